"""Order ids, stems, run ids and slugs: the protocol's vectors and properties. Source: protocol §2.1, §2.4, §12.3, rulings B6, B7, H7."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.addresses import (
    ORDER_ID,
    RUN_ID,
    SLUG,
    Address,
    mint_run_id,
    parse_address,
    scope_stem,
    slug_of,
    slugify,
    stem_of,
)

NAMES = st.from_regex(r"[a-z0-9][A-Za-z0-9.-]{0,12}", fullmatch=True)
NUMBERS = st.integers(0, 999_999_999)


@pytest.mark.parametrize(
    ("order_id", "address"),
    [
        ("s/a-r1-b-r2-a3", Address("a-r1-b", 2, 3)),
        ("s/evaluate-r2", Address("evaluate", 2, None)),
        ("s/orient", Address("orient", None, None)),
        ("s", Address(None, None, None)),
        ("s/", Address(None, None, None)),
        ("", Address(None, None, None)),
        ("s/core-r10-a12", Address("core", 10, 12)),
        ("s/core-r1-a", Address("core-r1-a", None, None)),
        ("s/a/b-r1-a2", Address("a/b", 1, 2)),
        ("s/Core.x-r1-a1", Address("Core.x", 1, 1)),
        ("s/core-r0", Address("core", 0, None)),
        ("s/x-r1-a1-r2-a3", Address("x-r1-a1", 2, 3)),
    ],
)
def test_an_address_is_read_by_one_parser(order_id: str, address: Address) -> None:
    """W-03."""
    assert parse_address(order_id) == address


def test_an_unscoped_build_order_has_a_round_and_no_name() -> None:
    """Ruling B7, W-03: the reference reads no round here."""
    assert parse_address("s/r1-a2") == Address(None, 1, 2)


@given(NAMES, NUMBERS, NUMBERS)
def test_name_round_and_attempt_come_back_out_of_a_stem(name: str, round_: int, attempt: int) -> None:
    assert parse_address(f"s/{name}-r{round_}-a{attempt}") == Address(name, round_, attempt)


@given(st.text(max_size=60))
def test_no_order_id_makes_the_parser_raise(text: str) -> None:
    address = parse_address(text)
    assert (address.name is None) <= (address.attempt is not None or not stem_of(text))


def test_a_number_that_no_reader_could_hold_is_part_of_the_name() -> None:
    digits = "9" * 5000  # int() refuses to read these
    assert parse_address(f"s/core-r{digits}-a1") == Address(f"core-r{digits}-a1", None, None)


@given(NAMES, NAMES)
def test_the_first_slash_parts_slug_and_stem(slug: str, stem: str) -> None:
    assert slug_of(f"{slug}/{stem}/x") == slug
    assert stem_of(f"{slug}/{stem}/x") == f"{stem}/x"


@pytest.mark.parametrize(
    ("scope_id", "stem"), [("SC_01 Cart", "sc-01-cart"), ("__x", "x"), ("A.b-C", "a.b-c"), ("İ", "i-"), ("", "")]
)
def test_a_scope_id_becomes_a_stem(scope_id: str, stem: str) -> None:
    assert scope_stem(scope_id) == stem


@given(st.text(max_size=40))
def test_a_scope_stem_fits_into_an_order_id(scope_id: str) -> None:
    """Ruling B6: mapping twice changes nothing, and what is not empty is a legal stem."""
    stem = scope_stem(scope_id)
    assert scope_stem(stem) == stem
    assert not stem or ORDER_ID.match(f"s/{stem}")


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("***", "run"),
        ("", "run"),
        ("日本語", "run"),
        ("  --x--  ", "x"),
        ("A/B testing: v2.0!", "a-b-testing-v2-0"),
        (
            "# Add a CSV export button to the orders list and make sure it is fast!!",
            "add-a-csv-export-button-to-the-orders-list-and-m",
        ),
        ("a" * 47 + " b", "a" * 47),  # W-71: the cut leaves no trailing dash
    ],
)
def test_text_becomes_a_slug(text: str, slug: str) -> None:
    assert slugify(text) == slug


@given(st.text(max_size=200))
def test_a_slug_is_always_a_legal_one(text: str) -> None:
    """W-71."""
    slug = slugify(text)
    assert SLUG.match(slug)
    assert len(slug) <= 48
    assert not slug.endswith("-")
    assert slugify(slug) == slug


INTAKE = hashlib.sha256(b"Add a CSV export button to the orders list.\n").hexdigest()


@pytest.mark.parametrize(
    ("slug", "started_at", "intake", "run_id"),
    [
        ("orders-csv", "2026-08-21T09:12:33.481Z", INTAKE, "orders-csv-20260821T091233Z-e7483e5a"),
        ("My_Feature.2", "2026-01-05T23:59:59Z", None, "my-feature-2-20260105T235959Z-497c5e55"),
        ("__", "2026-01-05T23:59:59Z", None, None),
        ("a", "yesterday", None, None),
        ("a", "2026-03-01", None, None),
        ("🛒", "2026-03-01T10:15:00Z", None, None),
    ],
)
def test_a_run_id_is_minted(slug: str, started_at: str, intake: str | None, run_id: str | None) -> None:
    assert mint_run_id(slug, started_at, intake) == run_id


@given(st.text(max_size=20), st.text(max_size=20), st.none() | st.text(max_size=8))
def test_a_minted_run_id_has_the_pattern(slug: str, tail: str, intake: str | None) -> None:
    minted = mint_run_id(slug, f"2026-03-01T10:15:00{tail}", intake)
    assert minted is None or RUN_ID.match(minted)
