"""Opens a repository for the daemon: pygit2 where it can, git's command line elsewhere. Source: design §4, targets 23.

pygit2 serves the reading of many commits; the command line takes over in repositories that pygit2 cannot open or could
misread (sha256, reftable, another owner, an extension, grafts) and wherever it fails. pygit2 costs 60 ms and 16 MB, so
it is imported when the first new commit is read, never before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from daemon.commits.command_line import CommandLine, head_names
from daemon.commits.history import Git, Refs, Step, Touch, author_of
from hooks.path_change import ABSENT_MODE, GITLINK_MODE, PathChange
from hooks.range.commits import Commit

if TYPE_CHECKING:
    import pygit2

Answer = TypeVar("Answer")

LOOKED_THROUGH = 2000  # commits, where the history of one path is asked for
_KNOWN_EXTENSIONS = frozenset({"extensions.noop", "extensions.worktreeconfig", "extensions.preciousobjects"})


class OpenGit:
    """The repository of this common git dir, read by whichever of the two can. Raises GitFailed where neither can."""

    def __init__(self, common_dir: Path) -> None:
        self._dir = common_dir
        self._sure: Git = CommandLine(common_dir)
        self._fast: Git | None = None
        self._is_tried = False

    def refs(self) -> Refs:
        # Asked for at every start: two short processes cost less than the import.
        return self._ask(lambda git: git.refs()) if "pygit2" in sys.modules else self._sure.refs()

    def tags(self) -> frozenset[str]:
        return self._ask(lambda git: git.tags())

    def walk(self, tips: Iterable[str], hidden: Iterable[str], since: int | None = None) -> tuple[Step, ...]:
        ends, kept = tuple(tips), tuple(hidden)
        return self._ask(lambda git: git.walk(ends, kept, since))

    def read(self, ids: Sequence[str]) -> tuple[Commit, ...]:
        return self._ask(lambda git: git.read(ids))

    def author(self, commit: str) -> bytes:
        return self._ask(lambda git: git.author(commit))

    def touches(self, tip: str, path: bytes, limit: int) -> tuple[Touch, ...]:
        return self._ask(lambda git: git.touches(tip, path, limit))

    def entries(self, commits: Sequence[str], path: str) -> tuple[str, ...]:
        return self._ask(lambda git: git.entries(commits, path))

    def blob(self, blob: str) -> bytes | None:
        return self._ask(lambda git: git.blob(blob))

    def close(self) -> None:
        if self._fast is not None:
            self._fast.close()
        self._fast, self._is_tried = None, False

    def _ask(self, ask: Callable[[Git], Answer]) -> Answer:
        if not self._is_tried:
            self._fast, self._is_tried = open_pygit2(self._dir), True
        if self._fast is not None:
            try:
                return ask(self._fast)
            except (
                Exception
            ):  # whatever pygit2 stumbles over, git may know; what git does not know either is raised below
                self._fast = None
        return ask(self._sure)


def open_pygit2(common_dir: Path) -> Pygit2 | None:
    """The repository through pygit2; None where pygit2 cannot open it, or might read it otherwise than git does."""
    if (common_dir / "info" / "grafts").exists() or (common_dir / "reftable").exists():
        return None
    try:
        import pygit2

        repository = pygit2.Repository(os.fspath(common_dir), pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
        extensions = {entry.name.lower() for entry in repository.config if entry.name.lower().startswith("extensions.")}
    except Exception:  # absent, or another of its many refusals: the command line says what is wrong, if anything is
        return None
    return Pygit2(common_dir, repository) if extensions <= _KNOWN_EXTENSIONS else None


class Pygit2:
    """History through libgit2. Raises whatever pygit2 raises."""

    def __init__(self, common_dir: Path, repository: pygit2.Repository) -> None:
        self._dir = common_dir
        self._repository = repository

    @property
    def repository(self) -> pygit2.Repository:
        return self._repository

    def refs(self) -> Refs:
        tips, remotes = {}, set()
        for name, commit in self._named():
            if name.startswith("refs/heads/"):
                tips[name] = commit
            elif name.startswith("refs/remotes/"):
                remotes.add(commit)
        return Refs(tips | self._heads(tips), frozenset(remotes))

    def _named(self, *, peels: bool = False) -> Iterator[tuple[str, str]]:
        """Every ref with the commit it leads to; `peels`: through tag objects."""
        import pygit2

        for ref in self._repository.references.iterator():
            try:
                found: object = self._repository[ref.resolve().target]
                if peels and isinstance(found, pygit2.Tag):
                    found = found.peel(None)
            except (KeyError, ValueError, pygit2.GitError):
                continue  # it leads nowhere; git lists none either
            if isinstance(found, pygit2.Commit):
                yield os.fsdecode(ref.raw_name), str(found.id)

    def _heads(self, branches: dict[str, str]) -> dict[str, str]:
        found = {}
        for name in head_names(self._dir):
            try:
                line = (self._dir / name).read_bytes().strip()
            except OSError:
                continue
            if line.startswith(b"ref:"):
                target = os.fsdecode(line[4:].strip())
                commit = branches.get(target) or self._lookup(target)
            else:
                commit = line.decode("ascii")
            if commit and self._commit(commit) is not None:
                found[name] = commit
        return found

    def _lookup(self, name: str) -> str:
        ref = self._repository.references.get(name)
        return str(ref.resolve().target) if ref is not None else ""

    def _commit(self, commit: str) -> pygit2.Commit | None:
        import pygit2

        found: object = self._repository.get(commit)
        return found if isinstance(found, pygit2.Commit) else None

    def tags(self) -> frozenset[str]:
        return frozenset(commit for name, commit in self._named(peels=True) if name.startswith("refs/tags/"))

    def walk(self, tips: Iterable[str], hidden: Iterable[str], since: int | None = None) -> tuple[Step, ...]:
        import pygit2

        ends = [found.id for commit in tips if (found := self._commit(commit))]
        kept = [found.id for commit in hidden if (found := self._commit(commit))]
        if not ends:
            return ()
        if since is not None:
            kept += self._older(ends, kept, since)
        walker = self._repository.walk(None, pygit2.enums.SortMode.TOPOLOGICAL | pygit2.enums.SortMode.REVERSE)
        for commit in ends:
            walker.push(commit)
        for commit in kept:
            walker.hide(commit)
        return tuple(Step(str(commit.id), tuple(map(str, commit.parent_ids))) for commit in walker)

    def _older(self, ends: list[pygit2.Oid], kept: list[pygit2.Oid], since: int) -> list[pygit2.Oid]:
        """The commits older than `since` at which a walk stops."""
        seen, stack, older = set(kept), list(ends), []
        while stack:
            oid = stack.pop()
            if oid in seen:
                continue
            seen.add(oid)
            commit = self._commit(str(oid))
            if commit is None:
                continue  # a shallow clone ends here
            if commit.commit_time < since:
                older.append(oid)
            else:
                stack += commit.parent_ids
        return older

    def read(self, ids: Sequence[str]) -> tuple[Commit, ...]:
        return tuple(self._read(found) for commit in ids if (found := self._commit(commit)))

    def _read(self, commit: pygit2.Commit) -> Commit:
        sides = [{change.path: change for change in self._differences(parent, commit)} for parent in commit.parents]
        first = sides[0] if sides else {change.path: change for change in self._differences(None, commit)}
        paths = sorted(path for path in first if all(path in side for side in sides))
        others = [tuple((side[path].old_mode, side[path].old_blob) for side in sides[1:]) for path in paths]
        return Commit(
            str(commit.id),
            tuple(map(str, commit.parent_ids)),
            commit.author.time,
            commit.commit_time,
            _message(commit),
            tuple(first[path] if len(sides) < 2 else _combined(first[path]) for path in paths),
            tuple(others) if len(sides) > 1 else (),
        )

    def _differences(self, parent: pygit2.Commit | None, commit: pygit2.Commit) -> Iterator[PathChange]:
        import pygit2

        typed = pygit2.enums.DiffOption.INCLUDE_TYPECHANGE
        if parent is None:
            diff = commit.tree.diff_to_tree(flags=typed, swap=True)
        else:
            diff = parent.tree.diff_to_tree(commit.tree, flags=typed)
        for delta in diff.deltas:
            old, new = delta.old_file, delta.new_file
            yield PathChange(
                delta.status_char(),
                new.raw_path,
                f"{int(old.mode):06o}",
                f"{int(new.mode):06o}",
                str(old.id),
                str(new.id),
            )

    def author(self, commit: str) -> bytes:
        found = self._commit(commit)
        return author_of(found.read_raw()) if found else b""

    def touches(self, tip: str, path: bytes, limit: int) -> tuple[Touch, ...]:
        return tuple(islice(self._touches(tip, os.fsdecode(path)), limit))

    def _touches(self, tip: str, path: str) -> Iterator[Touch]:
        commit = self._commit(tip)
        for _ in range(LOOKED_THROUGH):
            if commit is None:
                return
            parent = self._commit(str(commit.parent_ids[0])) if commit.parent_ids else None
            before = _entry(parent, path)
            if before != _entry(commit, path):
                yield Touch(str(commit.id), *before)
            commit = parent

    def entries(self, commits: Sequence[str], path: str) -> tuple[str, ...]:
        found = (_entry(self._commit(commit), path) for commit in commits)
        return tuple("" if mode in (ABSENT_MODE, GITLINK_MODE) else blob for mode, blob in found)

    def blob(self, blob: str) -> bytes | None:
        import pygit2

        found: object = self._repository.get(blob)
        return found.data if isinstance(found, pygit2.Blob) else None

    def close(self) -> None:
        self._repository.free()


class ObjectWriter:
    """Writes objects and shadow refs through libgit2, each on disk before it returns. Raises whatever pygit2 raises."""

    def __init__(self, repository: pygit2.Repository) -> None:
        import pygit2

        pygit2.settings.enable_fsync_gitdir(True)
        self._repository = repository
        self._kinds = {name: pygit2.enums.ObjectType[name.upper()] for name in ("blob", "tree", "commit")}

    def write(self, kind: str, data: bytes) -> str:
        """The id of an object of this kind with these bytes, which nobody looks into."""
        return str(self._repository.write(self._kinds[kind], data))

    def write_stream(self, file: FileIO) -> str:
        """The id of a blob with what the file holds, as it is: no filter runs."""
        return str(self._repository.create_blob_fromiobase(file))

    def point(self, ref: str, commit: str) -> None:
        import pygit2

        self._repository.references.create(ref, pygit2.Oid(hex=commit), force=True)

    def close(self) -> None:
        self._repository.free()


def open_object_writer(common_dir: Path) -> ObjectWriter | None:
    """A writer into this repository; None where `open_pygit2` would open none."""
    opened = open_pygit2(common_dir)
    return ObjectWriter(opened.repository) if opened else None


def _combined(change: PathChange) -> PathChange:
    """The change as git's combined form tells it, which knows no change of type."""
    return change._replace(status="M") if change.status == "T" else change


def _entry(commit: pygit2.Commit | None, path: str) -> tuple[str, str]:
    """Mode and id of what stands at a path; zeros where nothing does, or a folder."""
    found = None
    if commit is not None:
        try:
            found = commit.tree[path]
        except KeyError:
            pass
    if found is None or found.type_str == "tree":
        return ABSENT_MODE, "0" * 40
    return f"{int(found.filemode):06o}", str(found.id)


def _message(commit: pygit2.Commit) -> bytes:
    """The message in UTF-8, as git prints it."""
    encoding = commit.message_encoding
    if not encoding:
        return commit.raw_message
    try:
        return commit.raw_message.decode(encoding).encode()
    except (LookupError, ValueError):
        return commit.raw_message
