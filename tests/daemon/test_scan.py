"""The scan sees every file as it stands, follows no link, and tells what differs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon import scan
from daemon.scan import HEARD, Fingerprint, Known, Survey, diff, filesystem_of, fingerprint, is_fact_path, is_noise

PATHS = st.sampled_from([f"shapeup/a/{name}.json" for name in "abcdef"])
PRINTS = st.builds(
    Fingerprint, st.just(1), st.integers(1, 3), st.just(stat.S_IFREG), st.integers(0, 2), st.just(7), st.integers(0, 2)
)
TABLES = st.dictionaries(PATHS, PRINTS)


def write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_every_file_of_both_trees_is_found_by_its_repository_path(tmp_path: Path) -> None:
    write(tmp_path / ".shapeup/checkout/orders/cart-r1-a1.json")
    write(tmp_path / "shapeup/checkout/scopes/cart.md")
    write(tmp_path / "src/main.py")
    assert set(scan.scan(tmp_path)) == {".shapeup/checkout/orders/cart-r1-a1.json", "shapeup/checkout/scopes/cart.md"}


def test_no_tree_at_all_is_an_empty_scan(tmp_path: Path) -> None:
    assert scan.survey(tmp_path) == Survey({}, set(), {})


def test_a_linked_folder_is_an_entry_and_is_not_entered(tmp_path: Path) -> None:
    write(tmp_path / "outside/secret.json")
    write(tmp_path / "shapeup/real.md")
    (tmp_path / "shapeup/link").symlink_to(tmp_path / "outside")
    found = scan.survey(tmp_path)
    assert found.files["shapeup/link"].mode_kind == stat.S_IFLNK
    assert set(found.files) == {"shapeup/real.md", "shapeup/link"}
    assert found.folders == {"shapeup"}


def test_a_tree_that_is_itself_a_link_is_one_entry(tmp_path: Path) -> None:
    write(tmp_path / "outside/secret.json")
    (tmp_path / "shapeup").symlink_to(tmp_path / "outside")
    assert {path: seen.mode_kind for path, seen in scan.scan(tmp_path).items()} == {"shapeup": stat.S_IFLNK}


def test_pipes_are_entries_of_their_own_kind_and_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "shapeup").mkdir()
    os.mkfifo(tmp_path / "shapeup/pipe.json")
    assert scan.scan(tmp_path)["shapeup/pipe.json"].mode_kind == stat.S_IFIFO


def test_a_name_that_is_not_utf8_comes_back_as_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "shapeup").mkdir()
    raw = os.path.join(os.fsencode(tmp_path), b"shapeup", b"\xff\n.json")
    with open(raw, "wb"):
        pass
    (path,) = scan.scan(tmp_path)
    assert os.fsencode(path) == b"shapeup/\xff\n.json"


@pytest.mark.parametrize(
    "name",
    [
        ".hidden.json",
        ".verdicts-cart.jsonl",
        ".ingest.lock",
        "order.json~",
        "order.json.tmp",
        "order.json.swp",
        "4913",
        "#order.json#",
        "order.sync-conflict-20240101-120000-ABCDEFG.json",
        "order (conflicted copy 2024-01-01).json",
        "order (Ann's conflicted copy 2024-01-01).json",
    ],
)
def test_editor_and_sync_tool_names_are_noise(name: str) -> None:
    assert is_noise(name)


@pytest.mark.parametrize(
    "name", ["cart-r1-a1.json", "UC-1-a.md", "tmp.json", "4913.json", "#1.md", "conflict-r1-a1.json", "trials.jsonl"]
)
def test_names_of_facts_are_no_noise(name: str) -> None:
    assert not is_noise(name)


def test_noise_and_what_lies_in_hidden_folders_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / ".shapeup/checkout/.ingest.lock/owner.json")
    write(tmp_path / ".shapeup/checkout/results/cart-r1-a1.json.tmp")
    write(tmp_path / ".shapeup/checkout/results/cart-r1-a1.json")
    found = scan.survey(tmp_path)
    assert set(found.files) == {".shapeup/checkout/results/cart-r1-a1.json"}
    assert found.folders == {".shapeup", ".shapeup/checkout", ".shapeup/checkout/results"}


def test_a_path_is_judged_as_the_scan_would() -> None:
    assert is_fact_path(".shapeup/checkout/orders/a.json")
    assert not is_fact_path(".shapeup/checkout/.ingest.lock/owner.json")
    assert not is_fact_path("shapeup/a.md~")
    assert not is_fact_path("src/main.py")
    assert not is_fact_path("")
    assert is_fact_path("shapeup/a~", is_folder=True)
    assert not is_fact_path("shapeup/.git", is_folder=True)
    assert is_fact_path(".shapeup", is_folder=True)


def test_a_rewrite_that_restores_size_and_mtime_is_still_seen(tmp_path: Path) -> None:
    path = write(tmp_path / "shapeup/a.md", "one")
    before = scan.scan(tmp_path)
    times = path.stat().st_mtime_ns
    while fingerprint(path) == before["shapeup/a.md"]:  # kernels before 6.13 step ctime every few ms
        path.write_text("two")
        os.utime(path, ns=(times, times))
    assert diff(before, scan.scan(tmp_path)) == {"shapeup/a.md"}


def test_a_folder_that_cannot_be_read_is_reported_and_its_files_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "shapeup/closed/a.md")
    write(tmp_path / "shapeup/closed/deep/b.md")
    write(tmp_path / "shapeup/open.md")
    known = Known()
    known.replace(scan.scan(tmp_path), set())
    real = os.open

    def deny(path: str, flags: int) -> int:
        if path.endswith("/closed"):
            raise PermissionError(13, "Permission denied")
        return real(path, flags)

    monkeypatch.setattr("daemon.scan.os.open", deny)
    found = scan.survey(tmp_path)
    assert found.unreadable == {"shapeup/closed": "Permission denied"}
    table, differs = known.compare(found)
    assert differs == set()
    assert set(table) == {"shapeup/closed/a.md", "shapeup/closed/deep/b.md", "shapeup/open.md"}


def test_a_folder_that_vanishes_while_being_listed_is_simply_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "shapeup/gone/a.md")
    real = os.open

    def remove(path: str, flags: int) -> int:
        if path.endswith("/gone"):
            (tmp_path / "shapeup/gone/a.md").unlink()
            (tmp_path / "shapeup/gone").rmdir()
        return real(path, flags)

    monkeypatch.setattr("daemon.scan.os.open", remove)
    assert scan.survey(tmp_path) == Survey({}, {"shapeup"}, {})


@given(TABLES, TABLES)
def test_the_diff_names_exactly_the_paths_whose_fingerprints_differ(
    old: dict[str, Fingerprint], new: dict[str, Fingerprint]
) -> None:
    assert diff(old, new) == {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}


@given(TABLES, TABLES, st.sets(PATHS))
def test_whatever_was_handed_on_or_heard_a_rescan_shows_what_is_not_so(
    before: dict[str, Fingerprint], after: dict[str, Fingerprint], heard: set[str]
) -> None:
    known = Known()
    known.replace(dict(before), set())
    known.hear(heard)
    table, differs = known.compare(Survey(dict(after), set(), {}))
    assert table == after
    assert differs >= diff(before, after)
    assert differs - diff(before, after) <= heard - before.keys()
    known.replace(table, differs)
    assert known.compare(Survey(dict(after), set(), {}))[1] == set()


def test_a_change_counts_as_missed_only_when_no_event_came_by_the_next_rescan() -> None:
    seen = Fingerprint(1, 1, stat.S_IFREG, 1, 1, 1)
    known = Known()
    table, differs = known.compare(Survey({"shapeup/late": seen, "shapeup/lost": seen}, set(), {}))
    assert known.replace(table, differs) == set()
    known.hear(["shapeup/late"])
    table, differs = known.compare(Survey(table, set(), {}))
    assert known.replace(table, differs) == {"shapeup/lost"}


def test_a_file_heard_of_and_lost_again_before_any_rescan_still_shows() -> None:
    known = Known()
    known.hear(["shapeup/a/brief"])
    assert known.below("shapeup/a") == {"shapeup/a/brief"}
    assert known.compare(Survey({}, set(), {}))[1] == {"shapeup/a/brief"}
    known.see("shapeup/a/brief", None)
    assert known.compare(Survey({}, set(), {}))[1] == set()
    assert len(known) == 0
    assert HEARD.ino == 0


def test_the_file_system_is_that_of_the_last_mount_over_the_path(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    inner = str(tmp_path / "with space").replace(" ", "\\040")
    (tmp_path / "with space").mkdir()
    table.write_text(
        "1 0 8:1 / / rw - ext4 /dev/vda rw\n"
        f"2 1 0:5 / {inner} rw shared:7 - nfs4 server:/x rw\n"
        f"3 1 0:6 / {inner}x rw - tmpfs none rw\n"
    )
    assert filesystem_of(tmp_path / "with space/repo", table) == "nfs4"
    assert filesystem_of(tmp_path, table) == "ext4"
    assert filesystem_of(tmp_path, tmp_path / "no such table") == ""
