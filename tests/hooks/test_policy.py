"""The judgement over changes and live orders, in its order. Source: protocol §3, W-08, W-09, W-12, W-15, rulings E2-E4, E13, E15, targets 13, 17."""

from __future__ import annotations

import unicodedata

import pytest

from hooks.path_change import PathChange
from hooks.policy import leaves_repository, requires_live_order
from hooks.specs import SpecVerdict
from hooks.verdict import RULES, Violation
from tests.hooks.changing import (
    EXECUTABLE,
    FILE,
    GITLINK_MODE,
    SYMLINK_MODE,
    Sides,
    change,
    judged,
    order,
    policy,
    rules,
)

SRC = policy(order(allowed=("src/**",)))
UC = "shapeup/cart/spec/usecases/UC-1.md"
UC_TEXT = b"# UC-1\n\n## Steps\n1. pay\n\n## Test Surface\n- TS-1\n"


# --- precedence ------------------------------------------------------------------------------------------------------


def test_a_path_inside_a_live_orders_whitelist_passes() -> None:
    assert judged(SRC, "src/a.py", change("src/b.py", "A"), change("src/c.py", "D")) == ()


def test_a_path_outside_every_whitelist_is_denied_and_says_who_comes_closest() -> None:
    both = policy(order(allowed=("src/**",)), order("cart/docs-r1-a1", allowed=("docs/guide/*.md", "docs/**/x.txt")))
    (found,) = judged(both, "docs/guide/deep/a.md")
    assert (found.rule, found.path, found.order_id) == ("OUTSIDE", b"docs/guide/deep/a.md", None)
    assert "cart/docs-r1-a1 comes closest: it may write docs/guide/*.md" in found.why
    assert found.fix == "git restore --staged -- docs/guide/deep/a.md"
    (far,) = judged(both, "lib/a.py")
    assert "cart/core-r1-a1, cart/docs-r1-a1" in far.why


def test_frozen_beats_allowed_shared_and_append_only() -> None:
    for field in ("allowed", "shared", "append_only"):
        of = policy(order(**{field: ("src/**",), "frozen": ("src/core.py",)}))
        (found,) = judged(of, "src/core.py", content=Sides())
        assert (found.rule, found.order_id) == ("FROZEN", "cart/core-r1-a1")
        assert judged(of, "src/core.py", content=Sides()) == judged(of, "src/core.py", content=Sides())


def test_one_orders_freeze_binds_all_and_one_orders_permission_serves_all() -> None:
    of = policy(
        order("cart/a-r1-a1", allowed=("src/**",)), order("cart/b-r1-a1", allowed=("lib/**",), frozen=("src/x",))
    )
    assert rules(judged(of, "src/y", "lib/y", "src/x")) == ["FROZEN"]


def test_the_first_order_that_freezes_is_named() -> None:
    of = policy(order("cart/a-r1-a1", frozen=("x.md",)), order("cart/b-r1-a1", frozen=("x.md",)))
    assert judged(of, "x.md")[0].order_id == "cart/a-r1-a1"


def test_what_people_may_always_write_goes_before_frozen() -> None:
    of = policy(order(allowed=("src/**",), frozen=("docs/**",)), human_globs=("docs/*.md",))
    assert judged(of, "docs/a.md") == ()
    assert rules(judged(of, "docs/a/b.md")) == ["FROZEN"]


def test_a_return_to_what_was_there_before_goes_before_everything_but_the_local_tree() -> None:
    of = policy(order(allowed=("src/**",), frozen=("docs/**",)))
    back = {b"docs/a.md", b"lib/x", b".shapeup/x"}
    found = judged(of, "docs/a.md", "lib/x", "lib/y", ".shapeup/x", is_return=lambda item: item.path in back)
    assert [(v.rule, v.path) for v in found] == [("OUTSIDE", b"lib/y"), ("R-37", b".shapeup/x")]


def test_without_a_constraining_order_everything_passes_but_the_local_tree() -> None:
    for of in (policy(), policy(order()), policy(order(allowed=("src/**",), frozen=("x",), answered=True))):
        assert judged(of, "anything.py", "x", "shapeup/cart/scopes/a.md") == ()
        assert rules(judged(of, ".shapeup/cart/receipt.json")) == ["R-37"]


def test_an_order_without_globs_neither_constrains_nor_permits() -> None:
    assert rules(judged(policy(order("cart/a"), order("cart/b", allowed=("src/**",))), "other.py")) == ["OUTSIDE"]


def test_an_answered_order_permits_and_no_longer_freezes() -> None:
    of = policy(
        order("cart/a-r1-a1", allowed=("src/**",), frozen=("lib/**",), answered=True),
        order("cart/b-r1-a1", allowed=("lib/**",)),
    )
    assert judged(of, "src/a", "lib/a") == ()


def test_a_superseded_order_freezes_and_no_longer_permits() -> None:
    of = policy(
        order("cart/a-r1-a1", allowed=("src/**",), frozen=("lib/x",), superseded=True),
        order("cart/b-r1-a1", allowed=("lib/**",)),
    )
    assert rules(judged(of, "src/a", "lib/a", "lib/x")) == ["OUTSIDE", "FROZEN"]


def test_violations_come_in_the_order_of_the_changes() -> None:
    paths = [f"lib/{name}" for name in "zebra"]
    assert [v.path.decode() for v in judged(SRC, *paths)] == paths


def test_an_empty_commit_breaks_nothing() -> None:
    assert judged(policy(no_live_order="deny", has_open_run=True)) == ()


# --- the local tree --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", [".shapeup/x", ".shapeup", ".Shapeup/x", ".SHAPEUP/cart/orders/a.json", ".shape\u200cup/x", ".ſhapeup/x"]
)
def test_nothing_of_the_local_tree_is_committed_however_it_is_spelled(path: str) -> None:
    wide = policy(order(allowed=("**", path)), human_globs=("**",))
    (found,) = judged(wide, change(path, "A"))
    assert found.rule == "R-37"
    assert rules(judged(wide, change(path, "T", new=SYMLINK_MODE))) == ["R-37"]


def test_the_local_tree_may_be_taken_out_of_git() -> None:
    assert judged(SRC, change(".shapeup/cart/receipt.json", "D")) == ()


def test_a_name_that_only_begins_like_the_local_tree_is_another() -> None:
    assert rules(judged(SRC, ".shapeup2/x", ".shapeupx", "src/.shapeup/x")) == ["OUTSIDE", "OUTSIDE"]


# --- one order alone -------------------------------------------------------------------------------------------------

TWO = policy(
    order("cart/a-r1-a1", allowed=("src/a/**",), frozen=("docs/**",)),
    order("cart/b-r1-a1", allowed=("src/b/**", "docs/**")),
    order("cart/c-r1-a1", allowed=("src/c/**",), frozen=("src/c/core",), answered=True),
)


def test_a_commit_that_names_its_order_is_held_to_that_order() -> None:
    assert judged(TWO, "src/a/x", order_id="cart/a-r1-a1") == ()
    (found,) = judged(TWO, "src/b/x", order_id="cart/a-r1-a1")
    assert (found.rule, found.order_id) == ("OUTSIDE", "cart/a-r1-a1")
    assert "cart/b-r1-a1 may write it" in found.why


def test_the_freezes_of_all_live_orders_bind_a_commit_that_names_its_order() -> None:
    assert rules(judged(TWO, "docs/x", order_id="cart/b-r1-a1")) == ["FROZEN"]


def test_an_answered_order_that_a_commit_names_holds_it_to_its_own_list_freezes_included() -> None:
    assert judged(TWO, "src/c/x", order_id="cart/c-r1-a1") == ()
    assert rules(judged(TWO, "src/c/core", "src/a/x", order_id="cart/c-r1-a1")) == ["FROZEN", "OUTSIDE"]
    alone = policy(TWO.contracts[2])  # nothing is live: on a server, or after the run's last result
    assert judged(alone, "anything") == ()
    assert rules(judged(alone, "anything", order_id="cart/c-r1-a1")) == ["OUTSIDE"]


def test_a_superseded_order_that_a_commit_names_permits_nothing() -> None:
    of = policy(order("cart/a-r1-a1", allowed=("src/**",), superseded=True), order("cart/a-r1-a2", allowed=("src/**",)))
    (found,) = judged(of, "src/x", order_id="cart/a-r1-a1")
    assert found.rule == "OUTSIDE"
    assert "newer attempt" in found.why


def test_an_order_that_nobody_knows_is_said_once_and_permits_nothing() -> None:
    found = judged(TWO, "src/a/x", ".shapeup/x", order_id="cart/gone-r1-a1")
    assert [(v.rule, v.path) for v in found] == [("TRAILER-UNKNOWN", b""), ("R-37", b".shapeup/x")]


def test_naming_an_order_without_globs_opens_nothing_while_others_constrain() -> None:
    of = policy(order("cart/a"), order("cart/b", allowed=("src/**",)))
    assert rules(judged(of, "lib/x", order_id="cart/a")) == ["OUTSIDE"]
    assert judged(policy(order("cart/a")), "lib/x", order_id="cart/a") == ()


# --- a live order is required ----------------------------------------------------------------------------------------


def test_where_a_live_order_is_required_a_commit_without_one_is_refused_once() -> None:
    closed = policy(no_live_order="deny", has_open_run=True, human_globs=("docs/**",))
    assert requires_live_order(closed)
    found = judged(closed, "a", "b", "docs/c")
    assert [(v.rule, v.path) for v in found] == [("NO-LIVE-ORDER", b"")]
    assert judged(closed, "docs/c") == ()
    assert judged(closed, "a", "b", is_return=lambda item: True) == ()


def test_what_an_answered_order_covers_needs_no_live_one() -> None:
    closed = policy(order(allowed=("src/**",), answered=True), no_live_order="deny", has_open_run=True)
    assert judged(closed, "src/a") == ()
    assert rules(judged(closed, "src/a", "lib/b", "lib/c")) == ["NO-LIVE-ORDER"]
    assert rules(judged(closed, "lib/b", order_id="cart/core-r1-a1")) == ["OUTSIDE"]


def test_a_live_order_is_required_only_in_an_open_run_and_only_where_settings_say_so() -> None:
    assert judged(policy(no_live_order="deny"), "a") == ()
    assert judged(policy(has_open_run=True), "a") == ()
    assert rules(judged(policy(order(allowed=("b",)), no_live_order="deny", has_open_run=True), "a")) == ["OUTSIDE"]


# --- sections and growth ---------------------------------------------------------------------------------------------

RECONCILE = policy(
    order(
        "cart/reconcile-r2",
        "reconcile",
        append_only=("shapeup/cart/spec/usecases/*.md#Invariants", "shapeup/cart/spec/usecases/*.md#Test Surface"),
        frozen=("shapeup/cart/spec/usecases/*.md#Steps", "shapeup/cart/spec/domain-model.md"),
    )
)


def uc(after: bytes | None, before: bytes | None = UC_TEXT) -> list[str]:
    sides = Sides(
        {UC.encode(): before} if before is not None else {}, {UC.encode(): after} if after is not None else {}
    )
    status = "D" if after is None else "A" if before is None else "M"
    return rules(judged(RECONCILE, change(UC, status), content=sides))


def test_an_append_only_section_may_grow_and_a_frozen_one_may_not_change() -> None:
    assert uc(UC_TEXT + b"- TS-2\n") == []
    assert uc(UC_TEXT + b"\n## Invariants\n- INV-1\n") == []
    assert uc(UC_TEXT.replace(b"1. pay", b"1. steal") + b"- TS-2\n") == ["FROZEN"]
    assert uc(UC_TEXT.replace(b"- TS-1", b"- TS-9")) == ["APPEND-ONLY"]
    assert uc(UC_TEXT.replace(b"# UC-1", b"# UC-2")) == ["APPEND-ONLY"]
    assert uc(None) == ["FROZEN"]
    assert uc(UC_TEXT, before=None) == ["FROZEN"]
    assert uc(b"## Test Surface\n- TS-1\n", before=None) == []


def test_a_mode_change_alone_is_no_change_of_a_section() -> None:
    item = change(UC, "M", new=EXECUTABLE)
    assert judged(RECONCILE, item, content=Sides({item.path: UC_TEXT}, {item.path: UC_TEXT})) == ()


def test_a_link_or_a_submodule_in_the_place_of_a_section_has_no_section() -> None:
    sides = Sides({UC.encode(): UC_TEXT}, {UC.encode(): UC_TEXT})
    assert rules(judged(RECONCILE, change(UC, "T", new=SYMLINK_MODE), content=sides)) == ["FROZEN"]
    gone = Sides({UC.encode(): UC_TEXT}, {})
    assert rules(judged(RECONCILE, change(UC, "T", new=GITLINK_MODE), content=gone)) == ["FROZEN"]


def test_append_only_files_grow_at_their_end_whatever_tool_wrote_them() -> None:
    """W-12: the content tells, not the tool."""
    of = policy(order(append_only=("log/*.md",)))

    def grows(before: bytes | None, after: bytes | None, status: str = "M", mode: str = FILE) -> list[str]:
        old = {b"log/a.md": before} if before is not None else {}
        new = {b"log/a.md": after} if after is not None else {}
        return rules(judged(of, change("log/a.md", status, new=mode), content=Sides(old, new)))

    assert grows(b"a\n", b"a\nb\n") == grows(None, b"a\n", "A") == grows(b"a\n", b"a\n", mode=EXECUTABLE) == []
    assert grows(b"a\n", b"b\n") == grows(b"a\nb\n", b"a\n") == grows(b"a\n", None, "D") == ["APPEND-ONLY"]
    assert grows(b"a", b"a/b", "T", SYMLINK_MODE) == ["APPEND-ONLY"]


def test_two_orders_may_let_two_sections_of_one_file_grow() -> None:
    of = policy(order("cart/a-r1-a1", append_only=("n.md#A",)), order("cart/b-r1-a1", append_only=("n.md#B",)))
    item, before = change("n.md"), b"## A\n1\n## B\n2\n"
    both = Sides({b"n.md": before}, {b"n.md": b"## A\n1\n1\n## B\n2\n2\n"})
    assert judged(of, item, content=both) == ()
    assert rules(judged(of, item, content=both, order_id="cart/a-r1-a1")) == ["APPEND-ONLY"]


def test_an_allowed_section_opens_that_section_alone() -> None:
    of = policy(order(allowed=("n.md#A",)))
    before = b"## A\n1\n## B\n2\n"
    assert judged(of, "n.md", content=Sides({b"n.md": before}, {b"n.md": b"## A\nnew\n## B\n2\n"})) == ()
    assert rules(judged(of, "n.md", content=Sides({b"n.md": before}, {b"n.md": b"## A\n1\n## B\nx\n"}))) == ["OUTSIDE"]
    assert rules(judged(of, change("n.md", "D"), content=Sides({b"n.md": before}, {}))) == ["OUTSIDE"]


def test_a_hash_in_a_files_name_is_taken_for_the_name_too() -> None:
    of = policy(order(allowed=("docs/C#.md",), frozen=("lib/F#.fs",)))
    assert judged(of, "docs/C#.md") == ()
    assert rules(judged(of, "lib/F#.fs")) == ["FROZEN"]


# --- collisions ------------------------------------------------------------------------------------------------------

NFC, NFD = "é", "e\u0301"


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("src/core.py", "SRC/core.py"),
        ("src/Core.py", "src/core.py"),
        ("src/**", "Src/x"),
        (f"docs/caf{NFC}.md", f"docs/caf{NFD}.md"),
        (f"docs/caf{NFD}.md", f"docs/caf{NFC}.md"),
        (f"docs/CAF{NFC.upper()}.md", f"docs/caf{NFD}.md"),
        ("docs/straße.md", "docs/STRASSE.md"),
        ("docs/STRASSE.md", "docs/straße.md"),
        ("docs/ﬁle.md", "docs/file.md"),
        ("docs/İstanbul.md", "docs/i\u0307stanbul.md"),
        ("docs/ΣΟΦΟΣ.md", "docs/σοφος.md"),
        ("docs/σοφος.md", "docs/σοφοσ.md"),
        ("docs/한글.md", unicodedata.normalize("NFD", "docs/한글.md")),
        ("docs/core.md", "docs/co\u200dre.md"),
        ("docs/core.md", "docs/\ufeffcore.md"),
        ("docs/Kelvin.md", "docs/\u212aelvin.md"),
        ("docs/caf?.md", f"docs/caf{NFD}.md"),  # `?` matches the composed form
        ("docs/cafe?.md", f"docs/caf{NFC}.md"),  # and here the mark alone
        ("docs/cafe*", f"docs/caf{NFC}"),
        ("docs/\u1e9b\u0323.md", "docs/ṩ.md"),  # long s with two marks, in another order
        ("src/notes.md#Steps", "SRC/notes.md"),
    ],
)
def test_a_name_that_is_a_frozen_one_where_case_or_accents_fold_is_a_collision(glob: str, path: str) -> None:
    of = policy(order(allowed=("**",), frozen=(glob,)))
    (found,) = judged(of, change(path, "A"))
    assert (found.rule, found.order_id) == ("COLLISION", "cart/core-r1-a1")
    assert glob in found.why
    assert judged(of, change(path, "D")) == ()  # taking it away is the cure


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("docs/i.md", "docs/ı.md"),  # dotless: no case pair of i outside Turkish
        ("docs/İ.md", "docs/i.md"),
        (f"docs/{NFC}.md", "docs/e.md"),
        ("docs/ss?.md", "docs/s.md"),
        ("docs/a.md", "docs/а.md"),  # Cyrillic а only looks alike
    ],
)
def test_names_that_differ_otherwise_do_not_collide(glob: str, path: str) -> None:
    assert judged(policy(order(allowed=("**",), frozen=(glob,))), path) == ()


def test_what_matches_a_frozen_glob_itself_does_not_collide_with_it() -> None:
    of = policy(order(allowed=("**",), frozen=("notes.md#Steps", "NOTES.md#Steps")))
    text = {b"notes.md": b"## Steps\n1\n"}
    assert rules(judged(of, "notes.md", content=Sides(text, text))) == ["COLLISION"]  # with the other one
    of = policy(order(allowed=("**",), frozen=("Notes.md#Steps",)))
    same = {b"Notes.md": b"## Steps\n1\n"}
    assert judged(of, "Notes.md", content=Sides(same, {b"Notes.md": b"new\n## Steps\n1\n"})) == ()


def test_a_case_variant_never_widens_what_is_allowed() -> None:
    assert rules(judged(SRC, "SRC/a.py", "Src/a.py")) == ["OUTSIDE", "OUTSIDE"]


@pytest.mark.parametrize(
    "path", ["Shapeup/cart/scopes/a.md", "shapeup/cart/Scopes/a.md", "SHAPEUP/x", ".ShapeUpD.toml", "ſhapeup/x.md"]
)
def test_a_spec_in_another_spelling_does_not_come_past_the_rules_for_specs(path: str) -> None:
    (found,) = judged(policy(order(allowed=("**",))), change(path, "A"))
    assert found.rule == "COLLISION"
    assert judged(policy(), change(path, "A")) == ()


# --- sole writers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "writers"),
    [
        ("shapeup/cart/scopes/core.md", {"map-scopes"}),
        ("shapeup/cart/scope-board.md", {"map-scopes"}),
        ("shapeup/cart/wiring-map.md", {"wire"}),
        ("shapeup/cart/spec/ux-behavior.md", {"analyze", "reconcile", "retrofit-surface", "amend"}),
        ("shapeup/cart/spec/usecases/UC-1.md", {"analyze", "reconcile", "retrofit-surface", "amend"}),
        ("shapeup/cart/requirements.md", {"coverage", "amend"}),
        ("shapeup/knowledge-base/task-executor.md", {"coach"}),
        ("shapeup/cart/project-profile.md", set()),
        ("shapeup/cart/hill-chart.md", set()),
        ("shapeup/cart/round-ledger.md", set()),
        ("shapeup/cart/hill/core.yml", set()),
        ("shapeup/cart/REPORT.md", {"hammer"}),
        (".shapeupd.toml", set()),
    ],
)
def test_a_committed_file_has_one_writer_whatever_a_glob_opens(path: str, writers: set[str]) -> None:
    for operation in ("execute", "map-scopes", "wire", "analyze", "reconcile", "coverage", "coach", "hammer", ""):
        found = judged(policy(order("cart/x", operation, allowed=("**",))), path)
        assert rules(found) == ([] if operation in writers else ["R-19"]), operation
    assert judged(policy(order(allowed=("a",)), human_globs=("**",)), path) == ()


def test_the_writer_may_be_one_of_several_orders() -> None:
    of = policy(order("cart/a", "execute", allowed=("**",)), order("cart/wire", "wire", allowed=("shapeup/cart/*.md",)))
    assert judged(of, "shapeup/cart/wiring-map.md") == ()
    assert rules(judged(of, "shapeup/cart/wiring-map.md", order_id="cart/a")) == ["R-19"]


def test_append_only_does_not_make_a_writer() -> None:
    of = policy(order(append_only=("shapeup/cart/requirements.md",)))
    assert rules(judged(of, "shapeup/cart/requirements.md")) == ["R-19"]


# --- links, submodules, modes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "target", "leaves"),
    [
        (b"src/a", b"b", False),
        (b"src/a", b"../lib/b", False),
        (b"src/a", b"..", False),
        (b"src/a", b"../..", True),
        (b"a", b"..", True),
        (b"a", b"../x", True),
        (b"src/a", b"/etc/passwd", True),
        (b"src/a", b"x/../../../y", True),
        (b"src/a", b"./.././/b", False),
        (b"src/x/y/a", b"../../../../z", True),
        (b"src/a", b"", False),
        (b"src/\xff", b"\xfe", False),
    ],
)
def test_a_link_stays_inside_the_repository(path: bytes, target: bytes, leaves: bool) -> None:
    assert leaves_repository(path, target) is leaves
    item = change(path, "A", new=SYMLINK_MODE)
    assert (
        rules(judged(policy(order(allowed=("**",))), item, content=Sides({}, {path: target}))) == ["SYMLINK"] * leaves
    )


def test_exec_bits_submodules_and_type_changes_pass_inside_a_whitelist_and_only_there() -> None:
    items = [
        ("M", FILE, EXECUTABLE),
        ("A", FILE, GITLINK_MODE),
        ("M", GITLINK_MODE, GITLINK_MODE),
        ("T", GITLINK_MODE, FILE),
        ("T", SYMLINK_MODE, FILE),
    ]
    for status, old, new in items:
        assert judged(SRC, change("src/a", status, old=old, new=new)) == ()
        assert rules(judged(SRC, change("lib/a", status, old=old, new=new))) == ["OUTSIDE"]


@pytest.mark.parametrize(
    "raw", [b"src/\xff\xfe", b"src/a\\b", b'src/"q"', "src/\u00e9".encode(), b"src/ x ", b"src/-n"]
)
def test_names_of_any_bytes_are_judged_as_they_are(raw: bytes) -> None:
    assert judged(SRC, change(raw)) == ()
    (found,) = judged(SRC, change(b"lib" + raw))
    assert found.path == b"lib" + raw
    assert found.fix.isprintable()


def test_a_newline_is_no_text_for_two_stars() -> None:
    assert rules(judged(SRC, "src/a\nb")) == ["OUTSIDE"]  # C11


# --- overrides and specs ---------------------------------------------------------------------------------------------


def test_paths_that_a_person_lets_pass_pass_but_never_the_local_tree() -> None:
    of = policy(order(allowed=("src/**",), frozen=("docs/**",)))
    found = judged(of, "docs/a", "lib/b", ".shapeup/x", "etc/c", allow_paths=("docs/**", "lib/*", ".shapeup/**"))
    assert [(v.rule, v.path) for v in found] == [("R-37", b".shapeup/x"), ("OUTSIDE", b"etc/c")]


def test_the_rules_over_specs_are_asked_only_when_a_spec_changes() -> None:
    asked: list[int] = []
    hit = Violation("R-38", b"shapeup/cart/scopes/a.md", None, "", "", "")
    warning = hit._replace(rule="TIER-DIRECTION")

    def specs(changes: tuple[PathChange, ...], *_: object) -> SpecVerdict:
        asked.append(len(changes))
        return SpecVerdict((hit,), frozenset({b"shapeup/cart/hill/a.yml"}), (warning,))

    told: list[Violation] = []
    named = {"specs": specs, "on_warning": told.append}
    assert judged(SRC, "src/a", **named) == ()
    assert asked == told == []
    mixed = ("lib/a", "shapeup/cart/hill/a.yml", "shapeup/cart/scopes/a.md")
    assert rules(judged(SRC, *mixed, **named)) == ["OUTSIDE", "R-38", "OUTSIDE"]
    assert rules(judged(policy(), *mixed, **named)) == ["R-38"]  # no live order lets a contract be deleted either
    assert asked == [3, 3]
    assert told == [warning, warning]
    assert judged(SRC, "shapeup/cart/scopes/a.md", **named, is_return=lambda item: True) == ()


def test_what_passes_by_content_passes_under_any_order_and_even_frozen() -> None:
    shard = b"shapeup/cart/hill/core.yml"
    of = policy(order(allowed=("src/**",), frozen=("shapeup/**",)))
    item = change(shard, "A")
    content = Sides({}, {shard: b"scope_id: core\nphase: UPHILL_UNKNOWN\n"})
    assert judged(of, item, content=content, specs=None) == ()
    assert judged(of, item, content=Sides({}, {shard: b"phase: FINISHED\n"}), specs=None) != ()


# --- texts and size --------------------------------------------------------------------------------------------------


def test_every_refusal_is_a_rule_a_claim_a_reason_and_one_way_forward() -> None:
    of = policy(
        order(allowed=("**",), append_only=("log",), frozen=("x", "Y")),
        order("cart/b-r1-a1", append_only=("log",)),
    )
    links = Sides({}, {b"l": b"/etc"})
    narrow = policy(order(append_only=("log",)))
    found = [
        *judged(
            of, "x", "y", ".shapeup/a", "shapeup/cart/wiring-map.md", change("l", "A", new=SYMLINK_MODE), content=links
        ),
        *judged(narrow, "log", "other", content=Sides({b"log": b"a"}, {})),
        *judged(of, "a", order_id="gone"),
        *judged(policy(no_live_order="deny", has_open_run=True), "a"),
    ]
    assert {v.rule for v in found} == {
        *("FROZEN", "COLLISION", "R-37", "R-19", "SYMLINK"),
        *("APPEND-ONLY", "OUTSIDE", "TRAILER-UNKNOWN", "NO-LIVE-ORDER"),
    }
    for violation in found:
        assert violation.rule in RULES
        assert all(text and "\n" not in text for text in violation[3:]), violation


def test_a_thousand_orders_and_twenty_thousand_changes_are_judged_by_looking_up() -> None:
    contracts = [
        order(
            f"cart/s{n}-r1-a1",
            allowed=(f"src/s{n}/**", f"tests/s{n}/*.py", ".shapeup/cart/spikes/**"),
            shared=(f"docs/{n}/**/*.md",),
            frozen=(f"src/s{n}/frozen/**", f"spec/s{n}/*.md#Steps"),
        )
        for n in range(1000)
    ]
    of = policy(*contracts)
    fine = [f"src/s{n % 1000}/d/f{n}.py" for n in range(20_000)]
    assert judged(of, *fine) == ()
    assert rules(judged(of, *(f"src/s{n}/frozen/x" for n in range(1000)))) == ["FROZEN"] * 1000
    assert rules(judged(of, *(f"lib/f{n}" for n in range(1000)))) == ["OUTSIDE"] * 1000


def test_globs_of_many_stars_under_many_orders_are_no_burden() -> None:
    of = policy(
        *(order(f"cart/s{n}-r1-a1", allowed=(f"**b/?a{n}**b**c", "**b/?a*" * (n % 20 + 3) + "z")) for n in range(300))
    )
    assert rules(judged(of, *("ab/" * 300 + f"{n}z" for n in range(10)))) == ["OUTSIDE"] * 10
