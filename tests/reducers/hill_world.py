"""A small feature told step by step: the facts of its hill, and the moments at which they came."""

from __future__ import annotations

from datetime import UTC, datetime

from parsers.hill_shards import PHASES
from parsers.hill_trail import HillRow
from reducers.breakers import Evaluation
from reducers.hill import HillFacts, HillScope, Measured, Unknowns

UNKNOWN, SOLVED, DOWNHILL, FINISHED = PHASES
NOW = datetime(2026, 3, 5, 9, 30, tzinfo=UTC)


def measured(
    scope: str, name: str, *, green: bool = True, seesaw: bool = True, at: str | None = None, flaw: str = ""
) -> Measured:
    """An artifact by its stem, `r1-a2-t3`."""
    round_, attempt, trial = (int(part[1:]) for part in name.split("-"))
    return Measured(scope, round_, attempt, trial, name, green, green and seesaw, at, flaw)


def moved(scope: str, *steps: tuple[str, str]) -> tuple[HillRow, ...]:
    """The trail of one scope: (moment, phase) for each change."""
    before = [None, *(phase for _, phase in steps)]
    return tuple(HillRow(at, scope, was, to, "told") for was, (at, to) in zip(before, steps, strict=False))


def checkout() -> HillFacts:
    """Seven scopes in all four phases, one of them split, one stuck, with names that a careless writer would trip over."""
    return HillFacts(
        "checkout",
        scopes=tuple(
            HillScope(name, (f"run {name}",), parts)
            for name, parts in (
                ("cart-totals", ()),
                ("payment-seam", ()),
                ("payment-seam-and-everything-behind-it", ()),
                ("discount-codes", ()),
                ("order-mail", ()),
                ("Address.form_v2", ()),
                ("checkout", ("cart-totals", "order-mail")),
            )
        ),
        measured=(
            measured("cart-totals", "r1-a1-t1", at="2026-03-02T10:00:00.000Z"),
            measured("cart-totals", "r2-a1-t1", at="2026-03-03T10:00:00.000Z"),
            measured("order-mail", "r1-a1-t2", seesaw=False, at="2026-03-02T11:00:00.000Z"),
            measured("Address.form_v2", "r1-a1-t3", at="2026-03-02T12:00:00.000Z"),
            measured("Address.form_v2", "r2-a1-t2", green=False, at="2026-03-03T12:00:00.000Z"),
            measured("discount-codes", "r1-a1-t4", green=False, at="2026-03-02T13:00:00.000Z"),
            measured("discount-codes", "r2-a1-t3", green=False, at="2026-03-03T13:00:00.000Z"),
            measured("discount-codes", "r3-a1-t1", green=False, at="2026-03-04T13:00:00.000Z"),
        ),
        evaluations=(Evaluation(1, "FAIL"), Evaluation(2, "PASS")),
        unknowns=(Unknowns("payment-seam", 1, 2),),
        worked=frozenset({("payment-seam", 1), ("discount-codes", 3)}),
        kept_green=frozenset({"cart-totals", "order-mail"}),
        live=frozenset({"order-mail"}),
        trail=(
            *moved("cart-totals", ("2026-03-01T09:00:00.000Z", SOLVED), ("2026-03-02T10:00:02.000Z", DOWNHILL)),
            *moved("payment-seam", ("2026-03-01T09:00:00.000Z", SOLVED), ("2026-03-01T17:20:00.000Z", UNKNOWN)),
            *moved("discount-codes", ("2026-03-01T09:00:00.000Z", SOLVED)),
            *moved("order-mail", ("2026-03-01T09:00:00.000Z", SOLVED), ("2026-03-02T11:00:01.000Z", DOWNHILL)),
            *moved(
                "Address.form_v2",
                ("2026-03-01T09:00:00.000Z", SOLVED),
                ("2026-03-02T12:00:01.000Z", DOWNHILL),
                ("2026-03-03T12:00:01.000Z", SOLVED),
            ),
        ),
    )
