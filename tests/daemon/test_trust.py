"""What this machine may run by itself: by hash, for one repository, from a list that nobody else can write. Source: rulings A2, A4."""

from __future__ import annotations

import argparse
import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from daemon.commands import trust as command
from daemon.exits import DONE, NOTHING_THERE, USAGE, WANTING, Exit
from daemon.trust import LIST, NotOurs, distrust, is_trusted, read_trusted, state_folder, trust

AT = datetime(2036, 1, 2, 3, 4, 5, tzinfo=UTC)
PATH = "shapeup/cart/scopes/core.md"
DATA = b"---\nscope_id: core\ne2e_verification_fixtures: [make test]\n---\n"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", os.fspath(tmp_path / "state"))
    return tmp_path / "state" / "shapeupd"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / PATH).parent.mkdir(parents=True)
    (root / PATH).write_bytes(DATA)
    return Path(os.path.realpath(root))


def shapeupd(root: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    command.arguments(parser)
    args = parser.parse_args(words)
    args.repo = (os.fspath(root),)
    return command.run(args)


def test_nothing_is_trusted_at_first(root: Path) -> None:
    assert not is_trusted(root, DATA)
    assert read_trusted(root) == ()
    assert not state_folder().exists()


def test_trust_is_by_hash_and_for_one_repository(root: Path, tmp_path: Path) -> None:
    trust(root, {PATH: DATA}, AT)
    assert is_trusted(root, DATA)
    assert not is_trusted(root, DATA + b" ")
    assert not is_trusted(tmp_path / "clone", DATA)


def test_the_same_again_adds_nothing_and_another_version_adds_one(root: Path) -> None:
    first = trust(root, {PATH: DATA}, AT)
    assert trust(root, {PATH: DATA}, AT.replace(year=2037)) == first
    trust(root, {PATH: b"other"}, AT)
    assert len(read_trusted(root)) == 2


def test_what_is_removed_is_trusted_in_no_version(root: Path) -> None:
    trust(root, {PATH: DATA}, AT)
    trust(root, {PATH: b"other", "shapeup/cart/scopes/more.md": b"more"}, AT)
    assert len(distrust(root, [PATH])) == 2
    assert not is_trusted(root, DATA)
    assert is_trusted(root, b"more")
    assert distrust(root, [read_trusted(root)[0].sha256[:8]])
    assert read_trusted(root) == ()


def test_folder_and_list_are_private(root: Path, state: Path) -> None:
    before = os.umask(0)
    try:
        trust(root, {PATH: DATA}, AT)
    finally:
        os.umask(before)
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in state.iterdir()} == {0o600}


@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_folder_that_others_may_write_is_not_believed(mode: int, root: Path, state: Path) -> None:
    trust(root, {PATH: DATA}, AT)
    state.chmod(mode)
    assert not is_trusted(root, DATA)
    with pytest.raises(NotOurs, match="chmod go-w"):
        trust(root, {PATH: b"x"}, AT)


def test_a_list_that_others_may_write_is_not_believed(root: Path, state: Path) -> None:
    trust(root, {PATH: DATA}, AT)
    (state / LIST).chmod(0o620)
    assert not is_trusted(root, DATA)


@pytest.mark.parametrize("place", ["list", "folder"])
def test_a_link_is_not_followed(place: str, root: Path, state: Path, tmp_path: Path) -> None:
    trust(root, {PATH: DATA}, AT)
    target = state if place == "folder" else state / LIST
    target.rename(tmp_path / "elsewhere")
    target.symlink_to(tmp_path / "elsewhere")
    assert not is_trusted(root, DATA)
    with pytest.raises(NotOurs):
        trust(root, {PATH: b"x"}, AT)


def test_a_pipe_in_its_place_stops_nobody(root: Path, state: Path) -> None:
    trust(root, {PATH: DATA}, AT)
    (state / LIST).unlink()
    os.mkfifo(state / LIST, 0o600)
    assert not is_trusted(root, DATA)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a folder away")
def test_another_users_folder_is_not_believed(root: Path, state: Path) -> None:
    trust(root, {PATH: DATA}, AT)
    os.chown(state, 12345, 12345)
    assert not is_trusted(root, DATA)


def test_a_list_inside_the_repository_is_not_believed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", os.fspath(root / "state"))
    with pytest.raises(NotOurs, match="in the repository"):
        trust(root, {PATH: DATA}, AT)
    assert not is_trusted(root, DATA)


def test_a_relative_state_folder_counts_as_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("HOME", os.fspath(tmp_path))
    assert state_folder() == tmp_path / ".local" / "state" / "shapeupd"


def test_a_torn_list_keeps_its_whole_rows(root: Path, state: Path) -> None:
    trust(root, {PATH: DATA}, AT)
    with (state / LIST).open("ab") as file:
        file.write(b'{"at": 1}\n{"torn')
    assert is_trusted(root, DATA)
    trust(root, {PATH: b"more"}, AT)
    assert len(read_trusted(root)) == 2


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_says_what_it_lets_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shapeupd(root, "core") == DONE
    assert "make test" in capsys.readouterr().out
    assert is_trusted(root, DATA)


def test_the_list_is_shown_and_a_contract_that_is_gone_can_be_removed(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shapeupd(root, os.fspath(root / PATH))
    (root / PATH).unlink()
    capsys.readouterr()
    assert shapeupd(root, "--list", "--json") == DONE
    assert [row["path"] for row in json.loads(capsys.readouterr().out)["trusted"]] == [PATH]
    assert shapeupd(root, "--remove", PATH) == DONE
    with pytest.raises(Exit) as ending:
        shapeupd(root, "--remove", PATH)
    assert ending.value.status == NOTHING_THERE


def test_of_several_contracts_none_is_trusted_where_one_does_not_read(root: Path) -> None:
    with pytest.raises(Exit) as ending:
        shapeupd(root, "core", "nope")
    assert ending.value.status == USAGE
    assert not is_trusted(root, DATA)


@pytest.mark.parametrize("words", [(), ("--list", "core")])
def test_a_list_or_contracts(words: tuple[str, ...], root: Path) -> None:
    with pytest.raises(Exit) as ending:
        shapeupd(root, *words)
    assert ending.value.status == USAGE


def test_a_list_that_is_not_ours_says_what_to_do(root: Path, state: Path) -> None:
    shapeupd(root, "core")
    state.chmod(0o777)
    with pytest.raises(Exit, match="chmod") as ending:
        shapeupd(root, "--list")
    assert ending.value.status == WANTING
