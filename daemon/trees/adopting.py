"""Takes over a tree that another tool kept on the unslugged ref, in the form in which ours are kept. Source: protocol §6.5, ruling G1, W-68.

That tool stored what git's filters make of the files, and only what git tracks: git itself lays them out in a folder aside.
"""

from __future__ import annotations

import os
import tempfile
from datetime import datetime
from pathlib import Path

from daemon.trees.listing import read_tree
from daemon.trees.looking import store_files
from daemon.trees.objects import Area, Note, render_note
from daemon.trees.refs import Kept, read_refs
from daemon.trees.site import Site, TreeFailed, git_env, kept_ref, settings
from daemon.trees.store import Tip
from hooks.git import ask_git


def adopt_tree(
    site: Site, legacy: Kept, slug: str, scope_id: str, allowed: tuple[str, ...], at: datetime, id_length: int
) -> Kept:
    """The same files under the scope's own ref, as their bytes lie on disk. Raises TreeFailed, GitFailed."""
    area, ref = Area((allowed,)), kept_ref(slug, scope_id)
    paths = [path for path in read_tree(site, legacy.commit) if area.holds(path)]
    note = Note("kept", slug, scope_id, None, area.areas, tracked_only=True)
    with tempfile.TemporaryDirectory(prefix="shapeupd-tree-") as folder:
        top = Path(folder) / "top"
        top.mkdir()
        _lay_out(site, legacy.commit, paths, top)
        store_files(site._replace(top=top), paths, (), id_length, Tip(ref, render_note(note), at, (legacy.commit,)))
    adopted = read_refs(site, (ref,)).get(ref)
    if adopted is None:
        raise TreeFailed(f"{ref} was not written")
    return adopted


def _lay_out(site: Site, commit: str, paths: list[str], top: Path) -> None:
    """Check the files out below `top`, through an index of our own: nothing of the user's is read or written."""
    env = {**git_env(), "GIT_INDEX_FILE": os.fspath(top.with_name("index"))}
    words = ("-C", os.fspath(site.top), f"--git-dir={site.git_dir}", f"--work-tree={site.top}", *settings())
    ask_git(*words, "read-tree", commit, env=env)
    lines = b"".join(os.fsencode(path) + b"\0" for path in paths)
    ask_git(*words, "checkout-index", "-z", "--stdin", f"--prefix={top}/", stdin=lines, env=env)
