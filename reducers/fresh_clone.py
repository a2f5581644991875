"""A board that lands on a machine without history: what the committed hill shards say of its tasks. Source: ruling K "A fresh clone"."""

from __future__ import annotations

from collections.abc import Sequence

from parsers.tasks import Task
from reducers.board import Scope, tasks_for_scope
from reducers.hill import FINISHED, HillFacts

CLOSED = ("done", "cut")


def tasks_done_elsewhere(facts: HillFacts, tasks: Sequence[Task]) -> tuple[Task, ...]:
    """The open tasks of scopes whose shard says FINISHED, to be set done; () where this machine knows the run itself.

    A task that an unfinished scope claims as well stays open: scopes are all that the shards know.
    """
    if facts.has_trace:
        return ()
    finished = {shard.scope_id for shard in facts.shards if shard.phase == FINISHED}
    claimed: dict[str, bool] = {}
    for scope in facts.scopes:
        for task in tasks_for_scope(tasks, Scope(scope.scope_id, scope.use_cases, False, False)):
            claimed[task.path] = claimed.get(task.path, True) and scope.scope_id in finished
    return tuple(task for task in tasks if claimed.get(task.path) and task.status not in CLOSED)
