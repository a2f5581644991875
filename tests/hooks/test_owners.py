"""R-19 as a table: each committed kind has the writers that protocol §1.4 and §3.1 name, and no others."""

from __future__ import annotations

import pytest

from hooks.owners import OWNERS, may_write, owner_words
from parsers.globs import matches
from parsers.layout import KINDS, classify, path_of
from parsers.substrates import TEMPLATES, template_of

OPERATIONS = sorted({*TEMPLATES, "amend"})
SHARED = sorted(artifact.kind for artifact in KINDS if artifact.tier == "SHARED")


def test_every_committed_kind_has_a_row_and_every_row_is_a_committed_kind() -> None:
    assert sorted(OWNERS) == SHARED


@pytest.mark.parametrize(
    ("kind", "writers"),
    [
        ("scope-contract", {"map-scopes"}),
        ("scope-board", {"map-scopes"}),
        ("wiring-map", {"wire"}),
        ("spec", {"analyze", "reconcile", "retrofit-surface", "amend"}),
        ("use-case", {"analyze", "reconcile", "retrofit-surface", "amend"}),
        ("requirements", {"coverage", "amend"}),
        ("knowledge-base", {"coach"}),
        ("report", {"hammer"}),
        ("shaping", {"translate"}),
        ("hill-shard", set()),
        ("hill-chart", set()),
        ("round-ledger", set()),
        ("project-profile", set()),
        ("settings", set()),
    ],
)
def test_a_kind_is_written_by_its_operations_alone(kind: str, writers: set[str]) -> None:
    assert {operation for operation in OPERATIONS if may_write(kind, operation)} == writers
    assert not may_write(kind, "")
    assert not may_write(kind, "anything else")


def test_a_path_without_a_sole_writer_is_anybodys() -> None:
    assert all(may_write(None, operation) and may_write("task", operation) for operation in [*OPERATIONS, ""])
    assert owner_words(None) == owner_words("task") == "whoever an order lets"


@pytest.mark.parametrize("operation", sorted(TEMPLATES))
def test_what_a_template_opens_is_never_closed_again_by_its_owner(operation: str) -> None:
    """Otherwise an order of the protocol's own making could not be carried out."""
    contract = template_of(operation, "cart")
    for kind in SHARED:
        path = path_of(kind, "cart", "x").replace("**", "x.md")
        opened = (glob.partition("#")[0] for glob in (*contract.allowed, *contract.append_only))
        if any(matches(glob, path) for glob in opened):
            place = classify(path)
            assert place is not None
            assert may_write(place.kind, operation), f"{operation} may write {path} by its template"


def test_refusals_say_in_words_who_may_write() -> None:
    assert owner_words("scope-contract") == "an order of map-scopes"
    assert owner_words("spec") == "an order of analyze or reconcile or retrofit-surface or amend"
    assert owner_words("round-ledger") == "the orchestrator and people, who add rows"
    assert all(owner_words(kind) for kind in SHARED)
