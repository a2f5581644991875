"""The table of contents knows kinds of the layout only, and each way through it is taken. Source: design §2."""

from __future__ import annotations

from parsers.layout import KINDS
from reducers.routes import ROUTES, Judges


def test_every_route_is_a_kind_of_the_layout_and_says_why() -> None:
    assert set(ROUTES) <= {artifact.kind for artifact in KINDS}
    assert all(route.why for route in ROUTES.values())


def test_whatever_a_result_may_have_waited_for_judges_it_again() -> None:
    """R-01 its order, C5 its task, R-02 its receipt of dispatch, R-18 its evidence, and the run it belongs to."""
    assert ROUTES["order"].judges is ROUTES["result"].judges is Judges.OWN
    assert {kind for kind, route in ROUTES.items() if route.judges is Judges.STANDING} == {
        "task",
        "dispatch",
        "receipt",
        "t0-verdict",
    }


def test_the_board_follows_tasks_and_its_own_text() -> None:
    assert {"task", "board-index"} <= {kind for kind, route in ROUTES.items() if route.derives_board}


def test_every_local_artifact_that_decides_an_ingest_has_a_route() -> None:
    """What the reducers of one run look at (reducers.run.Run) must be noticed when it lands."""
    assert {"order", "result", "task", "receipt", "dispatch", "legs", "ingest-record"} <= set(ROUTES)
