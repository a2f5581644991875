"""The units: rendered, then judged by systemd's own tools. Source: targets 33, ruling E12.

Without systemd-analyze these skip; where CI is set it must be there.
"""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from daemon.install.service_unit import (
    SYSTEM_UNIT,
    USER_UNIT,
    escape_path,
    render_unit,
    template,
    unit_name,
)
from parsers.faults import Fault

REPOSITORY = Path(__file__).resolve().parents[2]
MOST_EXPOSED = 1.5
ODD_PATHS = ("/", "/a/.b", "/.hid/x", "/a b/ü%f", "/a-b/c:d_e", "/x\ny/'q\"\\z", "/~t/@x+y=z", "/$HOME/%i")


def systemd(name: str) -> str:
    """The tool's path; skips the test where there is none and need not be one."""
    found = shutil.which(name)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"CI must have {name}")
        pytest.skip(f"{name} is not installed")
    return found


@pytest.fixture
def python(tmp_path: Path) -> str:
    """An interpreter whose path means something to systemd and to a shell."""
    folder = tmp_path / "a b %f $HOME ${x} ; ü"
    folder.mkdir()
    (folder / "python").write_text("#!/bin/sh\n")
    (folder / "python").chmod(0o755)
    return os.fspath(folder / "python")


def rendered(folder: Path, name: str, python: str) -> Path:
    data = render_unit(template(name), python, "shapeupd-owner")
    assert isinstance(data, bytes)
    (folder / name).write_bytes(data)
    return folder / name


@pytest.mark.parametrize(("name", "whose"), [(USER_UNIT, "--user"), (SYSTEM_UNIT, "--system")])
def test_systemd_has_nothing_to_say_about_the_units(
    name: str, whose: str, python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyze = systemd("systemd-analyze")
    monkeypatch.setenv("XDG_RUNTIME_DIR", os.fspath(tmp_path))
    unit = rendered(tmp_path, name, python)
    done = subprocess.run([analyze, whose, "verify", unit], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_the_tool_would_have_told_of_a_unit_that_is_wrong(python: str, tmp_path: Path) -> None:
    analyze = systemd("systemd-analyze")
    unit = rendered(tmp_path, SYSTEM_UNIT, python)
    unit.write_text(unit.read_text().replace("WatchdogSec=", "WatchdogSek="))
    done = subprocess.run([analyze, "verify", unit], capture_output=True, text=True, timeout=60, check=False)
    assert "WatchdogSek" in done.stderr


def test_the_system_unit_is_hardly_exposed(python: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    analyze = systemd("systemd-analyze")
    unit = rendered(tmp_path, SYSTEM_UNIT, python)
    words = [analyze, "security", "--offline=true", f"--threshold={MOST_EXPOSED * 10:.0f}", "--no-pager", unit]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    figure = done.stdout.strip().splitlines()[-1].removeprefix("→ ")
    with capsys.disabled():
        print(f" [{figure}] ", end="")
    assert done.returncode == 0, done.stdout
    strict = [word if not str(word).startswith("--threshold") else "--threshold=1" for word in words]
    assert subprocess.run(strict, capture_output=True, timeout=60, check=False).returncode != 0  # it does judge


def test_the_instance_is_named_as_systemd_names_it() -> None:
    escape = systemd("systemd-escape")
    done = subprocess.run([escape, "--path", "--", *ODD_PATHS], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [escape_path(path) for path in ODD_PATHS]
    words = [escape, "--path", f"--template={USER_UNIT}", *ODD_PATHS]
    named = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout.split()
    assert named == [unit_name(path) for path in ODD_PATHS]
    words = [escape, "--path", "--unescape", "--", *map(escape_path, ODD_PATHS)]
    back = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
    assert back.rstrip("\n") == " ".join(ODD_PATHS)


@pytest.mark.parametrize("python", ['/a"b/python', "/a'b/python", "/a\\b/python", "/a\nb/python", "/a\udcffb/python"])
def test_a_path_that_systemd_does_not_execute_is_refused(python: str) -> None:
    assert isinstance(render_unit(template(USER_UNIT), python), Fault)


@pytest.mark.parametrize("name", [USER_UNIT, SYSTEM_UNIT])
def test_the_units_say_what_the_watchdog_needs(name: str) -> None:
    lines = template(name).splitlines()
    for wanted in ("Type=notify", "NotifyAccess=main", "Restart=on-failure"):
        assert wanted in lines
    assert any(line.startswith("WatchdogSec=") for line in lines)
    assert any(line.startswith("ExecStart=:@PYTHON@ -I ") and line.endswith("run --repo %f") for line in lines)


def test_a_user_unit_asks_for_nothing_that_needs_privileges() -> None:
    """Each of these ends a user's service with 218/CAPABILITIES, or is silently without effect there."""
    names = {line.partition("=")[0] for line in template(USER_UNIT).splitlines()}
    needs = "CapabilityBoundingSet AmbientCapabilities User Group DynamicUser ProtectSystem ProtectHome PrivateTmp"
    needs += " PrivateDevices PrivateNetwork PrivateUsers PrivateMounts ProtectClock ProtectHostname ReadWritePaths"
    assert not {name for name in names if name in needs.split() or name.startswith(("ProtectKernel", "IPAddress"))}


def test_the_launchd_template_parses_and_says_that_it_is_untested() -> None:
    data = (REPOSITORY / "systemd" / "shapeupd.plist").read_bytes()
    assert b"UNTESTED" in data.split(b"<plist")[0]
    document = plistlib.loads(data)
    assert document["ProgramArguments"][0] == "@PYTHON@"
    assert document["ProgramArguments"][1:] == ["-I", "-m", "daemon", "run", "--repo", "@ROOT@"]
