"""A board that lands on a fresh clone takes what is finished from the committed hill. Source: ruling K."""

from parsers.hill_shards import HillShard
from parsers.tasks import parse_task
from reducers.fresh_clone import tasks_done_elsewhere
from reducers.hill import DOWNHILL, FINISHED, HillFacts, HillScope


def task(name, status="ready", more=""):
    text = f"---\nid: {name}\nstatus: {status}\n{more}---\n"
    return parse_task(f".shapeup/cart/tasks/{name}.md", text.encode())[0]


TASKS = (
    task("TASK-1", more="scope_id: core\n"),
    task("TASK-2", more="scope_id: mail\n"),
    task("TASK-3", more="use_case_refs: [UC-A]\n"),
    task("TASK-4", more="use_case_refs: [UC-B]\n"),
    task("TASK-5", "cut", more="scope_id: core\n"),
    task("TASK-6"),
)
CLONE = HillFacts(
    "cart",
    has_trace=False,
    scopes=(HillScope("core", use_cases=("UC-A", "UC-B")), HillScope("mail", use_cases=("UC-B",))),
    shards=(HillShard("core", FINISHED), HillShard("mail", DOWNHILL)),
)


def done(facts):
    return [one.id for one in tasks_done_elsewhere(facts, TASKS)]


def test_tasks_of_finished_scopes_are_done_and_shared_ones_are_not():
    assert done(CLONE) == ["TASK-1", "TASK-3"]


def test_a_machine_that_knows_the_run_takes_nothing_from_shards():
    assert not done(CLONE._replace(has_trace=True))


def test_a_shard_without_a_contract_finishes_nothing():
    assert not done(CLONE._replace(scopes=()))
