"""The table of artifacts: every path it makes it knows again. Source: protocol §1.2-1.4, design §2 "Fact"."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.layout import KINDS, NOT_A_SLUG, Artifact, Place, classify, folder_of, path_of

SLUGS = st.from_regex(r"[a-z0-9][a-z0-9-]{0,10}", fullmatch=True).filter(lambda slug: slug not in NOT_A_SLUG)
STEMS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9.-]{0,10}", fullmatch=True)


def test_kinds_have_one_name_each() -> None:
    kinds = [artifact.kind for artifact in KINDS]
    assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize("artifact", KINDS, ids=lambda artifact: artifact.kind)
@settings(max_examples=15, deadline=None)
@given(slug=SLUGS, stem=STEMS)
def test_a_path_made_from_the_table_is_classified_back(artifact: Artifact, slug: str, stem: str) -> None:
    path = path_of(artifact.kind, slug, stem).replace("**", f"deep/{stem}")
    assert classify(path) == Place(
        artifact.kind, slug if "<slug>" in artifact.template else None, stem if "<stem>" in artifact.template else None
    )
    assert path.startswith(".shapeup/" if artifact.tier == "LOCAL" else ("shapeup/", ".shapeupd.toml"))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".shapeup/cart/tasks/_index.md", "board-index"),
        (".shapeup/cart/tasks/TASK-1.md", "task"),
        (".shapeup/cart/receipts/ingest.jsonl", "ingest-record"),
        (".shapeup/cart/evaluation/.verdicts-evaluate-r1.jsonl", "verdict-ledger"),
        ("shapeup/cart/spec/usecases/UC-A.md", "use-case"),
        ("shapeup/cart/spec/domain-model.md", "spec"),
        ("shapeup/knowledge-base/requirements.md", "knowledge-base"),
        (".shapeupd.toml", "settings"),
    ],
)
def test_the_more_literal_row_wins(path: str, kind: str) -> None:
    place = classify(path)
    assert place is not None
    assert place.kind == kind


@pytest.mark.parametrize(
    "path",
    [
        "src/cart.py",
        ".shapeup/Cart/orders/a.json",
        ".shapeup/cart/orders/a/b.json",
        ".shapeup/cart/orders/.json",
        ".shapeup/cart/orders/a.json.tmp",
        ".shapeup/../orders/a.json",
        ".shapeup/metrics/orders/a.json",
        ".shapeup/cart/orders/a\n.json",
        "x/.shapeup/cart/orders/a.json",
        "",
    ],
)
def test_a_path_outside_the_table_is_none(path: str) -> None:
    assert classify(path) is None


@given(st.text(max_size=60))
def test_no_path_makes_it_raise(path: str) -> None:
    place = classify(path)
    assert place is None or place.slug is None or place.slug not in NOT_A_SLUG


def test_a_folder_is_the_path_without_its_name() -> None:
    assert folder_of("order", "cart") == ".shapeup/cart/orders"
    assert folder_of("dispatch", "cart") == ".shapeup/cart/receipts"
