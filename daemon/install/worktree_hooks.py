"""How a hook comes to us in one worktree: what git runs there, and whether that calls our stub. Source: design §6, ruling E18."""

from __future__ import annotations

import os
import subprocess
from typing import NamedTuple

from hooks.git import scrubbed_env
from hooks.install.disk_nodes import File, Node, read_node
from hooks.install.hooks_folder import CODE, hooks_path, is_below
from hooks.install.joining import Site
from hooks.install.leaving import LEGACY
from hooks.install.stub_text import is_of_lefthook, is_of_pre_commit, is_stub
from hooks.install.text_blocks import has_block
from hooks.install.worktrees import linked_worktrees
from parsers.faults import Fault

PATIENCE_S = 10.0
AGAIN = "run `shapeupd install`"


class Way(NamedTuple):
    """How a hook reaches our stub. `stub` is the file; `through` who calls it: git, pre-commit, lefthook, husky, a script."""

    stub: str
    through: str

    @property
    def is_ours_first(self) -> bool:
        """Whether a refusal of ours ends the hook before anybody else's part of it runs."""
        return self.through not in ("pre-commit", "lefthook")


def way_of(worktree: str, common: str, hook: str) -> Way | Fault:
    """The way in this worktree, or why there is none."""
    folder = hooks_path(worktree)
    path = f"{folder}/{hook}"
    node = read_node(path)
    if node is None:
        return _nothing_there(worktree, common, folder, hook)
    if not os.access(path, os.X_OK):
        return Fault(CODE, path, "it is not executable, so git does not run it", "the gate is open there", AGAIN)
    if is_stub(node):
        return Way(path, "git")
    if is_of_pre_commit(node) and is_stub(read_node(path + LEGACY)) and os.access(path + LEGACY, os.X_OK):
        return Way(path + LEGACY, "pre-commit")
    copy = f"{common}/shapeupd/hooks/{hook}"
    if is_of_lefthook(node):
        return _through_lefthook(worktree, hook, path, node, copy)
    script = f"{os.path.dirname(folder)}/{hook}" if os.path.basename(folder) == "_" else path
    return _through_script(script, "husky" if script != path else "a script", copy)


def _nothing_there(worktree: str, common: str, folder: str, hook: str) -> Fault:
    if not is_below(folder, common) and is_below(folder, worktree) and not os.path.isdir(folder):
        what = f"core.hooksPath is relative, and {os.path.relpath(folder, worktree)} is not in this worktree"
        fix = f"make the folder there (husky: run `husky`; else check its files out), or unset it and {AGAIN}"
        return Fault(CODE, worktree, what, "git runs no hook there, so only the daemon's audit sees its commits", fix)
    return Fault(CODE, f"{folder}/{hook}", "there is no such hook", "the gate is open there", AGAIN)


def _through_script(script: str, through: str, copy: str) -> Way | Fault:
    node = read_node(script)
    if not (isinstance(node, File) and has_block(node.data)):
        what = "it does not call the gate" if node is not None else "there is no such script"
        fix = f"{AGAIN}, and commit the lines it puts there"
        return Fault(CODE, script, what, "the gate is open there", fix)
    return Way(copy, through) if _runs(copy) else _no_copy(copy)


def _runs(copy: str) -> bool:
    return is_stub(read_node(copy)) and os.access(copy, os.X_OK)


def _no_copy(copy: str) -> Fault:
    return Fault(CODE, copy, "our stub is not there", "the lines that call it then do nothing", AGAIN)


def _through_lefthook(worktree: str, hook: str, path: str, node: Node, copy: str) -> Way | Fault:
    from daemon.yaml_file import NotYaml, read_yaml

    if not _runs(copy):
        return _no_copy(copy)
    text = node.data.decode("utf-8", "surrogateescape") if isinstance(node, File) else ""
    script = text.rsplit("call_lefthook run", 1)[0] + "call_lefthook dump\n"
    said = run_bounded(("sh", "-c", script), worktree, {**scrubbed_env(), "LEFTHOOK": "1", "NO_COLOR": "1"})
    try:
        merged = read_yaml(said.encode("utf-8", "surrogateescape"))
    except NotYaml:
        merged = None
    match merged:
        case dict():
            found = merged.get(hook)
            commands = found.get("commands") if isinstance(found, dict) and found.get("skip") is not True else None
            if isinstance(commands, dict) and "shapeupd" in commands:
                return Way(copy, "lefthook")
        case _:
            why = "its hook then lets everything pass"
            fix = f"install lefthook where git finds it, and look at what `lefthook dump` says in {worktree}"
            return Fault(CODE, path, "lefthook does not run in this worktree", why, fix)
    why = "lefthook does not call the gate there"
    return Fault(CODE, path, f"lefthook's configuration has no command of ours for {hook}", why, AGAIN)


def run_bounded(words: tuple[str, ...], worktree: str, env: dict[str, str]) -> str:
    """What a command says on both outputs, in a group of its own that does not outlive the time it is given."""
    return run_with_status(words, worktree, env)[1]


def run_with_status(
    words: tuple[str, ...], worktree: str, env: dict[str, str], patience_s: float = PATIENCE_S
) -> tuple[int | None, str]:
    """The exit status (None: it did not end in time, or could not be started) and what was said."""
    try:
        process = subprocess.Popen(
            words,
            cwd=worktree,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return None, str(error)
    with process:
        try:
            said, _ = process.communicate(timeout=patience_s)
            return process.returncode, said.decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return None, f"did not end within {patience_s:g} s"


def worktree_gaps(site: Site, *, planned: bool) -> tuple[Fault, ...]:
    """Linked worktrees in which git finds no way to us. `planned`: nothing is installed yet, so only folders are looked at."""
    found = []
    for worktree in linked_worktrees(site.root):
        if not planned:
            way = way_of(worktree, site.common, "pre-commit")
            found += [way] if isinstance(way, Fault) else []
        elif site.folder.is_relative and not os.path.isdir(hooks_path(worktree)):
            found.append(_nothing_there(worktree, site.common, hooks_path(worktree), "pre-commit"))
    return tuple(found)
