"""`shapeupd install --service systemd`: the unit comes, stays as long as it is wanted, and goes without a trace. Source: cli §2, targets 33."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daemon.doctor.service_checks import check_instances, check_service
from daemon.install.service_unit import unit_name
from daemon.place import find_place
from tests.e2e.hook_tools import command
from tests.hooks.history import History
from tests.hooks.installing import picture

THEIRS = b"[Service]\nExecStart=/usr/bin/true\n"


@pytest.fixture(autouse=True)
def _own_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("GIT_", "SHAPEUP", "XDG_CONFIG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", os.fspath(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    (tmp_path / "home").mkdir()


@pytest.fixture
def repo(tmp_path: Path) -> History:
    made = History(tmp_path / "my $HOME 'repo'")
    made.commit("one", a="1\n")
    return made


@pytest.fixture
def unit(repo: History, tmp_path: Path) -> Path:
    """Where the unit of the repository belongs."""
    return tmp_path / "home/.config/systemd/user" / unit_name(os.fspath(repo.root))


def put(unit: Path, data: bytes) -> None:
    unit.parent.mkdir(parents=True, exist_ok=True)
    unit.write_bytes(data)


def enable(unit: Path) -> Path:
    link = unit.parent / "default.target.wants" / unit.name
    link.parent.mkdir()
    link.symlink_to(unit)
    return link


def install(repo: History, *words: str, status: int = 0) -> Any:
    done = command("install", *words, cwd=repo.root)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    return done


def found(repo: History, name: str, linger: str = "/nowhere/linger") -> Any:
    return {check.name: check for check in check_service(find_place(repo.root), linger)}[name]


@pytest.mark.parametrize("before", [None, THEIRS])
def test_it_comes_once_and_goes_without_a_trace(
    repo: History, unit: Path, tmp_path: Path, before: bytes | None
) -> None:
    if before is not None:
        put(unit, before)
        unit.chmod(0o640)
    home = picture(tmp_path / "home")
    first = install(repo, "--service", "systemd")
    assert first.stdout.splitlines()[-1] == f"next: systemctl --user enable --now '{unit.name}'"
    assert f'ExecStart=:"{sys.executable}" -I ' in unit.read_text()
    once = picture(tmp_path / "home")
    for words in (("--service", "systemd"), (), ("--strict",)):  # wanted until it is not wanted any more
        again = install(repo, *words)
        assert "systemctl" not in again.stdout
        assert picture(tmp_path / "home") == once
    assert command("uninstall", cwd=repo.root).returncode == 0
    assert picture(tmp_path / "home") == home
    assert command("uninstall", cwd=repo.root).stdout == "nothing is installed here\n"


def test_none_takes_the_service_alone_away(repo: History, unit: Path) -> None:
    install(repo, "--service", "systemd")
    install(repo, "--service", "none")
    assert not unit.exists()
    assert (repo.root / ".git/hooks/pre-commit").exists()
    install(repo)
    assert not unit.exists()


def test_a_dry_run_says_it_and_does_nothing(repo: History, unit: Path, tmp_path: Path) -> None:
    home = picture(tmp_path / "home")
    done = install(repo, "--service", "systemd", "--dry-run")
    assert f"would change {os.path.relpath(unit, repo.root)}" in done.stdout
    assert "systemctl" not in done.stdout
    assert picture(tmp_path / "home") == home


def test_two_repositories_have_a_unit_each(repo: History, unit: Path, tmp_path: Path) -> None:
    other = History(tmp_path / "other")
    install(repo, "--service", "systemd")
    install(other, "--service", "systemd")
    assert command("uninstall", cwd=repo.root).returncode == 0
    assert [path.name for path in unit.parent.iterdir()] == [unit_name(os.fspath(other.root))]


def test_the_configuration_folder_may_lie_elsewhere(
    repo: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", os.fspath(tmp_path / "elsewhere"))
    install(repo, "--service", "systemd")
    assert (tmp_path / "elsewhere/systemd/user" / unit_name(os.fspath(repo.root))).exists()


def test_what_somebody_wrote_into_it_is_theirs(repo: History, unit: Path) -> None:
    install(repo, "--service", "systemd")
    edited = unit.read_bytes() + b"# mine\n"
    unit.write_bytes(edited)
    assert "drop-in" in found(repo, "service").fix
    refused = install(repo, status=1)
    assert "systemctl --user edit" in refused.stderr
    assert unit.read_bytes() == edited
    assert command("uninstall", cwd=repo.root).returncode == 0
    assert unit.read_bytes() == edited


@pytest.mark.parametrize("stands", [lambda unit: unit.symlink_to("/dev/null"), lambda unit: unit.mkdir()])
def test_what_is_no_file_is_left_alone(repo: History, unit: Path, stands: Callable[[Path], None]) -> None:
    unit.parent.mkdir(parents=True)
    stands(unit)
    before = picture(unit.parent)
    done = install(repo, "--service", "systemd", status=1)
    assert "E-SERVICE" in done.stderr
    assert picture(unit.parent) == before
    assert (repo.root / ".git/hooks/pre-commit").exists()  # the rest is installed


def test_while_it_is_enabled_it_does_not_go_and_the_way_is_told(repo: History, unit: Path) -> None:
    install(repo, "--service", "systemd")
    link = enable(unit)
    for words in (("uninstall",), ("install", "--service", "none")):
        refused = command(*words, cwd=repo.root)
        assert refused.returncode == 1
        assert f"systemctl --user disable --now '{unit.name}'" in refused.stderr
        assert unit.exists()
    link.unlink()
    link.parent.rmdir()
    assert command("uninstall", cwd=repo.root).returncode == 0
    assert not unit.parent.exists()


def test_a_unit_of_another_shapeupd_is_red_and_install_renews_it(
    repo: History, unit: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as other:
        other.setattr(sys, "executable", os.fspath(tmp_path / "old/python"))
        install(repo, "--service", "systemd")
    enable(unit)
    assert "another version or place" in found(repo, "service").what
    renewed = install(repo)
    assert renewed.stdout.splitlines()[-1].endswith(f"systemctl --user restart '{unit.name}'")
    assert found(repo, "service").ok is True


def test_doctor_tells_what_is_missing_of_the_service(repo: History, unit: Path, tmp_path: Path) -> None:
    assert (found(repo, "service").ok, found(repo, "linger").ok) == (None, None)
    install(repo, "--service", "systemd")
    assert "not enabled" in found(repo, "service").what
    assert found(repo, "service").fix == f"systemctl --user enable --now '{unit.name}'"
    enable(unit)
    assert found(repo, "service").ok is True
    assert found(repo, "linger").ok is None  # no logind there
    lingers = tmp_path / "systemd/linger"
    lingers.mkdir(parents=True)
    assert found(repo, "linger", os.fspath(lingers)).fix.startswith("loginctl enable-linger ")
    (lingers / found(repo, "linger", os.fspath(lingers)).fix.split()[-1]).touch()
    assert found(repo, "linger", os.fspath(lingers)).ok is True
    unit.unlink()
    assert "is gone" in found(repo, "service").what


def test_a_moved_repository_gets_a_unit_of_its_new_name(repo: History, unit: Path, tmp_path: Path) -> None:
    install(repo, "--service", "systemd")
    os.rename(repo.root, tmp_path / "moved")
    assert command("install", cwd=tmp_path / "moved").returncode == 0
    assert [path.name for path in unit.parent.iterdir()] == [unit_name(os.fspath(tmp_path / "moved"))]


def test_a_path_too_long_for_a_unit_is_refused_before_anything_changes(tmp_path: Path) -> None:
    repo = History(tmp_path / ("ü" * 70))
    before = picture(repo.root / ".git/hooks")
    done = install(repo, "--service", "systemd", status=1)
    assert "shorter path" in done.stderr
    assert picture(repo.root / ".git/hooks") == before


def test_the_system_unit_is_printed_and_nothing_is_written(repo: History, tmp_path: Path) -> None:
    before = picture(tmp_path)
    done = install(repo, "--print-system-unit")
    assert "\nUser=" in done.stdout
    assert "@" not in "".join(line for line in done.stdout.splitlines() if line.startswith(("User=", "ExecStart=")))
    assert "systemctl enable --now 'shapeupd-system@" in done.stderr
    assert picture(tmp_path) == before


def test_too_few_queues_are_red(tmp_path: Path) -> None:
    (tmp_path / "max_user_instances").write_text("3\n")
    check = check_instances(os.fspath(tmp_path), "/proc")
    assert check.ok is False
    assert "max_user_instances=" in check.fix
    assert check_instances("/nowhere").ok is None


def test_queues_of_this_user_are_counted(tmp_path: Path) -> None:
    (tmp_path / "max_user_instances").write_text("6\n")
    for pid, held in ((1, 2), (2, 1)):
        (tmp_path / f"{pid}/fd").mkdir(parents=True)
        for number in range(held):
            (tmp_path / f"{pid}/fd/{number}").symlink_to("anon_inode:inotify")
        (tmp_path / f"{pid}/fd/9").symlink_to("/dev/null")
    check = check_instances(os.fspath(tmp_path), os.fspath(tmp_path))
    assert (check.ok, check.what.split()[0]) == (False, "3")


def test_json_names_the_unit_among_the_changes(repo: History, unit: Path) -> None:
    document = json.loads(install(repo, "--service", "systemd", "--json").stdout)
    assert os.path.relpath(unit, repo.root) in document["changed"]
