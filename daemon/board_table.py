"""Reads a feature's board from its files and prints it as a table. Source: protocol §5.1, rulings J."""

from __future__ import annotations

from typing import Any

from daemon.disk import DiskTree
from daemon.terminal import print_table
from parsers.board import GLYPHS
from parsers.facts import read_order
from parsers.layout import folder_of
from parsers.markdown import decode
from parsers.tasks import Task, parse_boxes
from parsers.tree import Unreadable
from reducers.board import Scope, is_finished, reduce_board, scopes_of
from reducers.task_index import TaskIndex


def board_of(tree: DiskTree, slug: str) -> dict[str, Any]:
    """The board document of one feature."""
    tasks = sorted(TaskIndex.read(tree, slug), key=lambda task: (task.id, task.path))
    acs = {task.path: _criteria(tree, task) for task in tasks}
    return reduce_board(slug, tasks, acs, _scopes(tree, slug))


def _criteria(tree: DiskTree, task: Task) -> tuple[int, int]:
    try:
        boxes = parse_boxes(decode(tree.read(task.path) or b""))
    except Unreadable:
        return 0, 0
    return sum(box.ticked for box in boxes), len(boxes)


def _scopes(tree: DiskTree, slug: str) -> tuple[Scope, ...]:
    orders = {}
    for name in tree.list(folder_of("order", slug)):
        try:
            read = read_order(
                f"{folder_of('order', slug)}/{name}", tree.read(f"{folder_of('order', slug)}/{name}") or b""
            )
        except Unreadable:
            continue
        if read.fact:
            orders[read.fact.stem] = read.fact.order
    answered = frozenset(name.removesuffix(".json") for name in tree.list(folder_of("result", slug)))
    shards = folder_of("hill-shard", slug)
    finished = (name for name in tree.list(shards) if is_finished(decode(tree.read(f"{shards}/{name}") or b"")))
    return scopes_of(orders, answered, frozenset(name.removesuffix(".yml") for name in finished))


def show_board(board: dict[str, Any]) -> None:
    """Print one board document as a table, with what is wrong on it below."""
    tasks = board["tasks"]
    rows = [
        (
            task["id"],
            task["title"],
            f"{GLYPHS.get(task['status'], '')} {task['status']}".strip(),
            f"{task['acs']['done']}/{task['acs']['total']}",
            task["wave"] or "cycle",
            ", ".join(task["depends_on"]) or "-",
        )
        for task in tasks
    ]
    done = sum(task["status"] == "done" for task in tasks)
    title = f"{board['slug']}: {done} of {len(tasks)} tasks done"
    print_table(("id", "title", "status", "ACs", "wave", "depends on"), rows, title)
    for row in board["drift"]:
        print(f"drift: scope {row['scope_id']} is FINISHED, but {row['task_id']} is {row['status']}")
    for row in board["undispatched"]:
        print(f"{row['rule']}: scope {row['scope_id']} has a done task and no answered order")
    for row in board["unmet"]:
        print(f"unmet: {row['task_id']} is done with {row['open']} open criteria")
    for row in board["stuck"]:
        print(f"stuck: {row['task_id']} {row['why']}")
