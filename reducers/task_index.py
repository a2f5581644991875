"""All tasks of a run, kept so that one result costs the same on a board of ten and of ten thousand. Source: protocol §4.5, W-21.

The daemon updates it file by file as files change; reducers only look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from parsers.layout import folder_of, stem_at
from parsers.tasks import Task, parse_task
from parsers.tree import Tree, Unreadable

TASK_PREFIX = "TASK-"


def is_task_name(name: str) -> bool:
    """Whether a file name in tasks/ is a task's: `TASK-….md`."""
    return name.startswith(TASK_PREFIX) and name.endswith(".md")


class TaskIndex:
    """Tasks by path, with the two look-ups that must not scan the board: by id, and blocked tasks that could go on."""

    def __init__(self, tasks: Iterable[Task] = ()) -> None:
        self._by_path: dict[str, Task] = {}
        self._paths_of_id: dict[str, set[str]] = {}
        self._paths_of_name: dict[str, set[str]] = {}
        self._waiting_on: dict[str, set[str]] = {}
        self._ripe: set[str] = set()
        self._done = 0
        for task in tasks:
            self.put(task)

    @classmethod
    def read(cls, tree: Tree, slug: str) -> TaskIndex:
        """The index of every task file in the tree; what is no plain file is known by its name."""
        index = cls()
        folder = folder_of("board-index", slug)
        for name in tree.list(folder):
            if is_task_name(name):
                index.look(tree, f"{folder}/{name}")
        return index

    def look(self, tree: Tree, path: str) -> None:
        """Take in one file as it stands now; a vanished one leaves the index.

        What is no plain file stays in by its name alone: whoever means to edit it is then told what stands there.
        """
        try:
            data = tree.read(path) if is_task_name(path.rsplit("/", 1)[-1]) else None
        except Unreadable:
            data = b""
        if data is None:
            self.drop(path)
        else:
            self.put(parse_task(path, data)[0])

    def put(self, task: Task) -> None:
        """Take in one task, in place of what stood under its path."""
        before = self._by_path.get(task.path)
        if before == task:
            return
        if before:
            self._forget(before)
        else:
            for name in _names(task.path):
                self._paths_of_name.setdefault(name, set()).add(task.path)
        self._by_path[task.path] = task
        self._paths_of_id.setdefault(task.id, set()).add(task.path)
        for need in task.depends_on:
            self._waiting_on.setdefault(need, set()).add(task.path)
        self._done += task.status == "done"
        self._ripen({task.path, *self._waiting_on.get(task.id, ())})

    def drop(self, path: str) -> None:
        """Forget a task whose file is gone."""
        task = self._by_path.pop(path, None)
        if task:
            self._forget(task)
            for name in _names(path):
                self._paths_of_name[name].discard(path)
            self._ripe.discard(path)
            self._ripen(set(self._waiting_on.get(task.id, ())))

    def _forget(self, task: Task) -> None:
        self._paths_of_id[task.id].discard(task.path)
        for need in task.depends_on:
            self._waiting_on[need].discard(task.path)
        self._done -= task.status == "done"

    def _ripen(self, paths: Iterable[str]) -> None:
        for path in paths:
            if path in self._by_path and self._is_ripe(self._by_path[path], {}):
                self._ripe.add(path)
            else:
                self._ripe.discard(path)

    def _is_ripe(self, task: Task, statuses: Mapping[str, str]) -> bool:
        if statuses.get(task.path, task.status) != "blocked" or not task.depends_on or not task.has_frontmatter:
            return False
        return all(self._is_done(need, statuses) for need in task.depends_on)

    def _is_done(self, task_id: str, statuses: Mapping[str, str]) -> bool:
        paths = self._paths_of_id.get(task_id) or ()
        return any(self._status_of(path, statuses) == "done" for path in paths)

    def _status_of(self, path: str, statuses: Mapping[str, str]) -> str:
        task = self._by_path[path]
        return statuses.get(path, task.status) if task.has_frontmatter else ""

    def unblocked_by(self, statuses: Mapping[str, str]) -> tuple[Task, ...]:
        """Blocked tasks whose every dependency is done once these statuses (by path) hold, in path order.

        One pass: a task that becomes ready unblocks no other. Source: protocol §4.5.
        """
        near = set(self._ripe)
        for path in statuses:
            near |= self._waiting_on.get(self._by_path[path].id, set())
        return tuple(self._by_path[path] for path in sorted(near) if self._is_ripe(self._by_path[path], statuses))

    def find(self, task_id: str) -> tuple[Task, ...]:
        """The tasks that answer to an id: by frontmatter id, else by file name. More than one is ambiguous. Source: W-21."""
        paths = self._paths_of_id.get(task_id) or self._paths_of_name.get(task_id) or ()
        return tuple(self._by_path[path] for path in sorted(paths))

    def get(self, path: str) -> Task | None:
        """The task under this path."""
        return self._by_path.get(path)

    @property
    def done(self) -> int:
        """How many tasks are done."""
        return self._done

    def __iter__(self) -> Iterator[Task]:
        return iter([self._by_path[path] for path in sorted(self._by_path)])

    def __len__(self) -> int:
        return len(self._by_path)


def _names(path: str) -> Iterator[str]:
    """The ids a file name answers to: its stem, and each beginning of it that `-` or `.` follows."""
    stem = stem_at(path)
    yield from (stem[:at] for at, char in enumerate(stem) if at and char in "-.")
    yield stem
