"""Reads what the lints look at: a feature in the working tree, in an index or in a commit. Source: protocol §5.2, §5.3, design §2, ruling E9."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from daemon.disk import DiskTree
from hooks.git import ask_git, scrubbed_env
from hooks.objects import Objects
from hooks.path_change import GITLINK_MODE, SYMLINK_MODE
from parsers.faults import Fault
from parsers.layout import LOCAL_ROOT
from parsers.tree import Tree, Unreadable
from reducers.lint_spec.commit_rules import scope_findings, scopes_document
from reducers.lint_spec.facts import read_scope_facts

LEFT_OUT = frozenset({".git", "node_modules", LOCAL_ROOT})


def project_files(root: str | os.PathLike[str]) -> tuple[str, ...]:
    """Every path of the project that is no folder, sorted; links are named and never followed. Source: §5.2."""
    return tuple(sorted(_walk(os.fspath(root))))


def _walk(root: str) -> Iterator[str]:
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(f"{root}/{folder}") as entries:
                for entry in entries:
                    if entry.name in LEFT_OUT:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{folder}{entry.name}/")
                    else:
                        yield folder + entry.name
        except OSError:
            continue  # what cannot be listed holds nothing that a worker could write


class Stored(NamedTuple):
    """One file that git holds: its mode and its blob."""

    mode: str
    blob: str


class GitTree:
    """The files of an index or a commit as a Tree; git is asked for a blob when somebody reads it. To be closed."""

    def __init__(self, git_dir: str, entries: Mapping[str, Stored]) -> None:
        self._entries = entries
        self._paths = sorted(entries)
        self._objects = Objects(("--git-dir", git_dir))

    @classmethod
    def of_index(cls, git_dir: str, index: str) -> GitTree:
        """The index in that file, as it is staged. Raises GitFailed."""
        env = scrubbed_env() | {"GIT_INDEX_FILE": index}
        out = ask_git("--git-dir", git_dir, "--literal-pathspecs", "ls-files", "--full-name", "-s", "-z", env=env)
        return cls(git_dir, dict(_entries(out, blob_at=1)))

    @classmethod
    def of_commit(cls, git_dir: str, commit: str) -> GitTree:
        """The tree of a commit. Raises GitFailed."""
        name = f"{commit}^{{tree}}"
        out = ask_git("--git-dir", git_dir, "ls-tree", "--full-tree", "-r", "-z", name, env=scrubbed_env())
        return cls(git_dir, dict(_entries(out, blob_at=2)))

    @property
    def files(self) -> tuple[str, ...]:
        """The paths that the lints look at, sorted."""
        return tuple(path for path in self._paths if LEFT_OUT.isdisjoint(path.split("/")))

    def read(self, path: str) -> bytes | None:
        """The file's bytes; None where nothing is staged there. Raises Unreadable for a link, GitFailed for a missing blob."""
        stored = self._entries.get(path)
        if stored is None or stored.mode == GITLINK_MODE:
            return None
        if stored.mode == SYMLINK_MODE:
            why = "shapeupd reads plain files only, so nothing outside the tree is ever touched"
            raise Unreadable(Fault("E-NOT-A-FILE", path, "it is a symbolic link", why, "put a plain file in its place"))
        return self._objects.own_blob(stored.blob)

    def list(self, folder: str) -> tuple[str, ...]:
        """Names in the folder, sorted; empty when there is none."""
        prefix = folder.rstrip("/") + "/"
        names: dict[str, None] = {}
        for at in range(bisect_left(self._paths, prefix), len(self._paths)):
            if not self._paths[at].startswith(prefix):
                break
            names[self._paths[at][len(prefix) :].partition("/")[0]] = None
        return tuple(sorted(names))

    def close(self) -> None:
        """End git."""
        self._objects.close()


def _entries(out: bytes, *, blob_at: int) -> Iterator[tuple[str, Stored]]:
    """`mode blob stage<TAB>path` of ls-files, `mode kind blob<TAB>path` of ls-tree; of an unmerged path the last stage."""
    for line in out.split(b"\0"):
        told, tab, path = line.partition(b"\t")
        if tab:
            fields = told.decode("ascii").split()
            yield path.decode("utf-8", "surrogateescape"), Stored(fields[0], fields[blob_at])


class TwoTrees:
    """The SHARED tier of one tree with the LOCAL tier of another: what is staged, beside the board that is never committed."""

    def __init__(self, shared: Tree, local: Tree) -> None:
        self._shared = shared
        self._local = local

    def read(self, path: str) -> bytes | None:
        """The file's bytes from the tree that holds its tier."""
        return self._of(path).read(path)

    def list(self, folder: str) -> tuple[str, ...]:
        """Names in the folder, from the tree that holds its tier."""
        return self._of(folder).list(folder)

    def _of(self, path: str) -> Tree:
        return self._local if path == LOCAL_ROOT or path.startswith(f"{LOCAL_ROOT}/") else self._shared


def scope_reds(
    root: Path, slug: str, *, top: str | None = None, index: str | None = None, git_dir: str | None = None
) -> dict[str, list[dict[str, str]]]:
    """`check --print-scopes`: the reds of the feature's contracts in an index (with the git folder that it belongs to), else in
    the working tree at `top`, else at `root`; the board is always that of `root`. Raises GitFailed."""
    if index is not None and git_dir is not None:
        tree = GitTree.of_index(git_dir, index)
        try:
            facts = read_scope_facts(TwoTrees(tree, DiskTree(root)), slug, tree.files)
        finally:
            tree.close()
    else:
        folder = root if top is None else Path(top)
        facts = read_scope_facts(TwoTrees(DiskTree(folder), DiskTree(root)), slug, project_files(folder))
    return scopes_document(scope_findings(facts))
