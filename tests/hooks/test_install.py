"""install and uninstall over every state that a hooks folder can be in: three times is once, and back is as before. Source: targets 24."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hooks.install.disk_nodes import File, Link
from hooks.install.repository import Unreadable
from hooks.install.stub_text import HOOKS, SAVED, is_shell, is_stub, render_stub
from hooks.install.text_blocks import append_block, block, insert_block, strip_blocks
from tests.hooks.installing import LEFTHOOK, PLAIN, PRE_COMMIT, TEMPLATE, Place, picture, stub

EXAMPLES = int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "25"))


def _nothing(place: Place) -> None:
    place.hooks.mkdir()


def _no_folder(place: Place) -> None:
    assert not place.hooks.exists()


def _plain(place: Place) -> None:
    place.hook("pre-commit", PLAIN, 0o750)
    place.hook("pre-push", b"#!/usr/bin/env python3\n", 0o700)


def _switched_off(place: Place) -> None:
    place.hook("pre-commit", PLAIN, 0o644)


def _linked(place: Place) -> None:
    place.hooks.mkdir()
    (place.root / "scripts").mkdir()
    (place.root / "scripts" / "pre-commit").write_bytes(PLAIN)
    (place.hooks / "pre-commit").symlink_to("../../scripts/pre-commit")
    (place.hooks / "commit-msg").symlink_to("nowhere")


def _pre_commit(place: Place) -> None:
    place.hook("pre-commit", PRE_COMMIT)
    place.hook("pre-commit.legacy", PLAIN)


def _binary(place: Place) -> None:
    place.hook("pre-commit", bytes(range(256)) * 40)


STATES: dict[str, Callable[[Place], None]] = {
    "nothing": _nothing,
    "no folder": _no_folder,
    "plain": _plain,
    "switched off": _switched_off,
    "linked": _linked,
    "pre-commit": _pre_commit,
    "binary": _binary,
}


@pytest.fixture(params=STATES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    found = Place(tmp_path / "a 'quoted' $HOME \"repo\"")
    STATES[request.param](found)
    return found


@pytest.fixture
def empty(tmp_path: Path) -> Place:
    return Place(tmp_path / "repo")


def test_uninstall_brings_back_every_byte_and_mode(place: Place) -> None:
    before = place.picture()
    place.install(strict=True)
    assert place.picture() != before
    outcome = place.uninstall()
    assert place.picture() == before
    assert not outcome.faults


def test_three_installs_are_one(place: Place) -> None:
    place.install()
    once = place.picture()
    for _ in range(2):
        assert place.install().changed == ()
    assert place.picture() == once


def test_a_dry_run_names_the_changes_and_makes_none(place: Place) -> None:
    before = place.picture()
    planned = place.install(dry_run=True).changed
    assert place.picture() == before
    assert place.install().changed == planned
    installed = place.picture()
    restored = place.uninstall(dry_run=True).changed
    assert place.picture() == installed
    assert place.uninstall().changed == restored


def test_the_hook_that_was_there_lies_beside_ours_with_its_mode(empty: Place) -> None:
    empty.hook("pre-commit", PLAIN, 0o750)
    empty.install()
    assert is_stub(empty.node("pre-commit"))  # type: ignore[arg-type]
    assert empty.node("pre-commit" + SAVED) == File(PLAIN, 0o750)


def test_a_linked_hook_is_moved_as_a_link_and_never_written_through(empty: Place) -> None:
    _linked(empty)
    empty.install()
    assert empty.node("pre-commit" + SAVED) == Link("../../scripts/pre-commit")
    assert (empty.root / "scripts" / "pre-commit").read_bytes() == PLAIN


def test_a_second_shapeupd_takes_over_and_uninstall_still_restores(place: Place) -> None:
    before = place.picture()
    place.install(given=stub("/old/python"))
    place.install(given=stub("/new/python"))
    stub_now = place.node("pre-commit")
    assert isinstance(stub_now, File)
    assert b"'/new/python'" in stub_now.data
    place.uninstall()
    assert place.picture() == before


def test_strict_comes_and_goes_with_its_hook(empty: Place) -> None:
    empty.install(strict=True)
    assert empty.node("reference-transaction") is not None
    empty.install(strict=False)
    assert empty.node("reference-transaction") is None


def test_a_stub_that_lost_its_mode_gets_it_back(empty: Place) -> None:
    empty.install()
    (empty.hooks / "pre-commit").chmod(0o644)
    assert empty.install().changed == (os.fspath(empty.hooks / "pre-commit"),)
    assert os.access(empty.hooks / "pre-commit", os.X_OK)


def test_a_stub_that_was_deleted_comes_back_with_the_hook_behind_it(empty: Place) -> None:
    empty.hook("pre-commit")
    before = empty.picture()
    empty.install()
    (empty.hooks / "pre-commit").unlink()
    empty.install()
    assert is_stub(empty.node("pre-commit"))  # type: ignore[arg-type]
    empty.uninstall()
    assert empty.picture() == before


def test_a_saved_hook_that_was_edited_comes_back_as_it_is_now(empty: Place) -> None:
    empty.hook("pre-commit")
    empty.install()
    (empty.hooks / ("pre-commit" + SAVED)).write_bytes(b"#!/bin/sh\necho newer\n")
    empty.install()
    assert not empty.uninstall().faults
    assert (empty.hooks / "pre-commit").read_bytes() == b"#!/bin/sh\necho newer\n"


def test_a_stub_that_somebody_added_to_is_left_and_named(empty: Place) -> None:
    empty.hook("pre-commit")
    empty.install()
    with open(empty.hooks / "pre-commit", "ab") as file:
        file.write(b"echo mine\n")
    edited = empty.node("pre-commit")
    for outcome in (empty.install(), empty.uninstall(), empty.uninstall()):
        assert [fault.where for fault in outcome.faults] == [os.fspath(empty.hooks / "pre-commit")]
        assert empty.node("pre-commit") == edited
        assert empty.node("pre-commit" + SAVED) == File(PLAIN, 0o755)
    assert empty.node("commit-msg") is None


def test_after_the_remedy_for_an_edited_stub_all_is_well(empty: Place) -> None:
    before = empty.picture()
    empty.install()
    with open(empty.hooks / "pre-commit", "ab") as file:
        file.write(b"echo mine\n")
    (empty.hooks / "pre-commit").unlink()
    assert not empty.install().faults
    assert not empty.uninstall().faults
    assert {path for path in empty.picture() if path not in before} == set(empty.picture()) - set(before)
    assert empty.node("pre-commit") is None


def test_another_hook_in_our_place_is_not_overwritten_while_an_older_one_waits(empty: Place) -> None:
    empty.hook("pre-commit")
    empty.install()
    empty.hook("pre-commit", b"#!/bin/sh\necho other\n")
    for outcome in (empty.install(), empty.uninstall()):
        assert len(outcome.faults) == 1
        assert empty.node("pre-commit") == File(b"#!/bin/sh\necho other\n", 0o755)
        assert empty.node("pre-commit" + SAVED) == File(PLAIN, 0o755)


def test_another_hook_in_our_place_is_joined_where_none_was_before(empty: Place) -> None:
    empty.install()
    empty.hook("pre-commit", b"#!/bin/sh\necho other\n")
    assert not empty.install().faults
    assert empty.node("pre-commit" + SAVED) == File(b"#!/bin/sh\necho other\n", 0o755)
    assert not empty.uninstall().faults
    assert empty.node("pre-commit") == File(b"#!/bin/sh\necho other\n", 0o755)


def test_pre_commit_installed_over_us_ends_behind_us_again(empty: Place) -> None:
    """It moves our stub to `.legacy`; a plain hook that we had saved becomes what pre-commit calls legacy."""
    empty.hook("pre-commit")
    empty.install()
    os.rename(empty.hooks / "pre-commit", empty.hooks / "pre-commit.legacy")
    empty.hook("pre-commit", PRE_COMMIT)
    empty.install()
    assert is_stub(empty.node("pre-commit"))  # type: ignore[arg-type]
    assert empty.node("pre-commit" + SAVED) == File(PRE_COMMIT, 0o755)
    assert empty.node("pre-commit.legacy") == File(PLAIN, 0o755)
    assert empty.install().changed == ()
    assert not empty.uninstall().faults
    assert empty.node("pre-commit") == File(PRE_COMMIT, 0o755)
    assert empty.node("pre-commit.legacy") == File(PLAIN, 0o755)


def test_pre_commit_installed_twice_is_run_once(empty: Place) -> None:
    empty.hook("pre-commit", PRE_COMMIT)
    empty.install()
    os.rename(empty.hooks / "pre-commit", empty.hooks / "pre-commit.legacy")
    empty.hook("pre-commit", PRE_COMMIT + b"# newer\n")
    empty.install()
    assert empty.node("pre-commit.legacy") is None
    assert empty.node("pre-commit" + SAVED) == File(PRE_COMMIT + b"# newer\n", 0o755)


@pytest.mark.parametrize("moved_to", [".legacy", ".old"])
def test_uninstall_finds_our_stub_where_another_tool_put_it(empty: Place, moved_to: str) -> None:
    empty.hook("pre-commit")
    empty.install()
    os.rename(empty.hooks / "pre-commit", empty.hooks / f"pre-commit{moved_to}")
    theirs = PRE_COMMIT if moved_to == ".legacy" else LEFTHOOK
    empty.hook("pre-commit", theirs)
    assert not empty.uninstall().faults
    assert empty.node("pre-commit") == File(theirs, 0o755)
    assert empty.node(f"pre-commit{moved_to}") == File(PLAIN, 0o755)
    assert empty.node("pre-commit" + SAVED) is None


def test_lefthooks_own_hook_file_is_left_to_lefthook(empty: Place) -> None:
    empty.hook("pre-commit", LEFTHOOK)
    before = empty.node("pre-commit")
    outcome = empty.install()
    assert outcome.plan.chained == ("pre-commit",)
    assert empty.node("pre-commit") == before
    assert is_stub(empty.node("pre-push"))  # type: ignore[arg-type]
    assert (empty.common / "shapeupd" / "hooks" / "pre-commit").exists()


def test_without_its_record_our_stubs_are_known_by_their_first_lines(empty: Place) -> None:
    empty.hook("pre-commit")
    before = picture(empty.hooks)
    empty.install()
    (empty.common / "shapeupd" / "install.json").unlink()
    empty.install()
    assert empty.node("pre-commit" + SAVED) == File(PLAIN, 0o755)
    (empty.common / "shapeupd" / "install.json").unlink()
    empty.uninstall()
    assert picture(empty.hooks) == before


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b"\xff", b'{"schema": 2}', b"{" * 100000])
def test_a_damaged_record_is_named_and_nothing_is_touched(empty: Place, damage: bytes) -> None:
    empty.install()
    (empty.common / "shapeupd" / "install.json").write_bytes(damage)
    before = empty.picture()
    with pytest.raises(Unreadable, match="damaged"):
        empty.install()
    with pytest.raises(Unreadable, match="damaged"):
        empty.uninstall()
    assert empty.picture() == before


def test_a_record_cannot_name_a_path_by_climbing(empty: Place) -> None:
    empty.install()
    path = empty.common / "shapeupd" / "install.json"
    document = json.loads(path.read_bytes())
    document["entries"][0]["path"] = "$GIT/../../outside"
    path.write_text(json.dumps(document))
    with pytest.raises(Unreadable):
        empty.uninstall()


def test_the_exclude_file_keeps_what_people_add_after_us(empty: Place) -> None:
    exclude = empty.common / "info" / "exclude"
    exclude.write_bytes(b"no newline at the end")
    empty.install()
    with open(exclude, "ab") as file:
        file.write(b"mine\n")
    assert not empty.uninstall().faults
    assert exclude.read_bytes() == b"no newline at the end\nmine\n"


def test_an_exclude_file_that_is_a_link_is_not_written_through(empty: Place, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.write_text("theirs\n")
    exclude = empty.common / "info" / "exclude"
    exclude.unlink()
    exclude.symlink_to(shared)
    outcome = empty.install()
    assert [fault.where for fault in outcome.faults] == [os.fspath(exclude)]
    assert shared.read_text() == "theirs\n"
    assert is_stub(empty.node("pre-commit"))  # type: ignore[arg-type]


def test_a_folder_in_a_hooks_place_is_named_and_the_other_hooks_are_installed(empty: Place) -> None:
    (empty.hooks / "pre-commit").mkdir(parents=True)
    outcome = empty.install()
    assert [fault.where for fault in outcome.faults] == [os.fspath(empty.hooks / "pre-commit")]
    assert is_stub(empty.node("commit-msg"))  # type: ignore[arg-type]
    assert not empty.uninstall().faults


def test_what_others_keep_in_our_folder_outlives_us(empty: Place) -> None:
    empty.install()
    (empty.common / "shapeupd" / "accepts").write_text("row\n")
    empty.uninstall()
    assert os.listdir(empty.common / "shapeupd") == ["accepts"]


def test_a_repository_that_was_moved_can_be_uninstalled(empty: Place, tmp_path: Path) -> None:
    empty.hook("pre-commit")
    before = picture(empty.hooks)
    empty.install()
    os.rename(empty.root, tmp_path / "moved")
    moved = Place.__new__(Place)
    moved.root, moved.common = tmp_path / "moved", tmp_path / "moved" / ".git"
    moved.hooks = moved.common / "hooks"
    moved.uninstall()
    assert [row for _, row in sorted(picture(moved.hooks).items())] == [row for _, row in sorted(before.items())]


# --- the stub's values ------------------------------------------------------------------------------------------------


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1), st.booleans())
@settings(max_examples=EXAMPLES, deadline=None)
def test_no_path_can_say_anything_to_the_shell(value: str, is_bytes: bool) -> None:
    """Spaces, quotes, `$`, backticks, newlines and bytes that are no UTF-8 come out as they went in."""
    path = "/" + value + ("\udcff" if is_bytes else "")
    template = b"#!/bin/sh\nprintf '%s' @PYTHON@ @MAIN@\n"
    text = render_stub(stub(path, template), "pre-commit", "/r/.git/hooks", "/r")
    said = subprocess.run(["sh", "-s"], input=text, capture_output=True, check=True).stdout
    assert said == os.fsencode(path) + b"/venv/lib/hooks/__main__.py"


def test_the_way_to_the_working_tree_is_relative_so_that_both_may_be_moved() -> None:
    text = render_stub(stub(), "pre-commit", "/r/.git/hooks", "/r")
    assert b"root='../..'" in text
    assert b"root='../../work'" in render_stub(stub(), "pre-commit", "/git/hooks", "/work")


@pytest.mark.parametrize(
    ("script", "is_one"),
    [
        (b"", True),
        (b"npm test\n", True),
        (b"#!/bin/sh\n", True),
        (b"#!/usr/bin/env -S bash -e\n", True),
        (b"#!/bin/dash", True),
        (b"#!/usr/bin/env node\n", False),
        (b"#!/usr/bin/python3 -I\n", False),
        (b"\x7fELF\0\1", False),
    ],
)
def test_lines_of_sh_go_into_shell_scripts_only(script: bytes, is_one: bool) -> None:
    assert is_shell(script) is is_one


# --- blocks -----------------------------------------------------------------------------------------------------------

_LINES = st.lists(st.binary(max_size=8).filter(lambda line: b"\n" not in line and b"\r" not in line), max_size=6)


@given(_LINES, st.sampled_from([b"\n", b"\r\n"]), st.booleans(), st.integers(0, 8))
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_block_goes_in_anywhere_and_comes_out_without_a_trace(
    lines: list[bytes], newline: bytes, ends: bool, at: int
) -> None:
    text = newline.join(lines) + (newline if ends else b"")
    ours = block("title", ("one", "", "  two"))
    whole = text if not text or text.endswith(b"\n") else text + b"\n"
    assert strip_blocks(append_block(text, ours)) == whole
    out = strip_blocks(insert_block(text, ours, at))
    assert out in (text, whole)


def test_a_block_that_lost_its_end_is_left_alone() -> None:
    text = b"a\n# >>> shapeupd: x\nb\n"
    assert strip_blocks(text) == text


# --- any order of everything ------------------------------------------------------------------------------------------


@st.composite
def _stories(draw: st.DrawFn) -> tuple[str, list[str]]:
    acts = "install strict newer uninstall pre-commit lefthook overwrite delete chmod".split()
    return draw(st.sampled_from(sorted(STATES))), draw(st.lists(st.sampled_from(acts), max_size=7))


@given(_stories())
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_happens_our_part_can_be_taken_out_and_nothing_of_others_is_lost(
    tmp_path_factory: pytest.TempPathFactory, story: tuple[str, list[str]]
) -> None:
    state, acts = story
    place = Place(tmp_path_factory.mktemp("story") / "repo")
    STATES[state](place)
    theirs = set(_scripts(place))
    for number, act in enumerate(acts):
        _act(place, act, number, theirs)
        assert theirs <= set(_scripts(place)), (act, "lost a hook of somebody else")
        if act in ("install", "strict", "newer"):
            once = place.picture()
            _act(place, act, number, theirs)
            assert place.picture() == once
    place.uninstall()
    assert theirs <= set(_scripts(place))
    assert not [path for path in place.hooks.glob("*") if not path.is_symlink() and TEMPLATE[:30] in path.read_bytes()]
    assert not (place.common / "shapeupd").exists() or (place.hooks / ("pre-commit" + SAVED)).exists()


def _scripts(place: Place) -> list[bytes]:
    """What lies in the hooks folder that is not ours."""
    found = []
    for path in place.hooks.glob("*") if place.hooks.exists() else ():
        data = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes()
        if TEMPLATE[:30] not in data:
            found.append(data)
    return found


def _act(place: Place, act: str, number: int, theirs: set[bytes]) -> None:
    hook = place.hooks / "pre-commit"
    match act:
        case "install" | "strict" | "newer":
            place.install(strict=act == "strict", given=stub(f"/python{number}") if act == "newer" else None)
        case "uninstall":
            place.uninstall()
        case "pre-commit" | "lefthook":
            data = PRE_COMMIT if act == "pre-commit" else LEFTHOOK
            behind = hook.with_name("pre-commit" + (".legacy" if act == "pre-commit" else ".old"))
            if os.path.lexists(hook) and not os.path.lexists(behind):
                if hook.is_symlink() or data != hook.read_bytes():
                    os.rename(hook, behind)
                place.hook("pre-commit", data)
                theirs.add(data)
        case "overwrite":
            if not hook.is_symlink():
                _forget(hook, theirs)
                data = b"#!/bin/sh\necho %d\n" % number
                place.hook("pre-commit", data)
                theirs.add(data)
        case "delete":
            if os.path.lexists(hook):
                _forget(hook, theirs)
                hook.unlink()
        case "chmod":
            if hook.exists() and not hook.is_symlink():
                hook.chmod(0o644)


def _forget(hook: Path, theirs: set[bytes]) -> None:
    if os.path.lexists(hook):
        theirs.discard(os.fsencode(os.readlink(hook)) if hook.is_symlink() else hook.read_bytes())


def test_every_hook_of_the_plan_is_told_with_its_order(empty: Place) -> None:
    empty.hook("pre-commit", PRE_COMMIT)
    empty.hook("pre-push")
    told = dict(empty.install().plan.joined)
    assert set(told) == set(HOOKS)
    assert told["pre-commit"] == "the gate first, then pre-commit"
    assert told["pre-push"] == "the gate first, then the hook that was there"
    assert told["commit-msg"] == "the gate"
