"""The installed unit, run by a real systemd with all its hardening: ready, wedged, started anew, ended. Source: targets 32, 33.

Needs root, for a mount namespace in which a systemd of its own can believe it is at home; skips where that is not to be had.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e import under_systemd
from tests.e2e.living import SmallRun
from tests.hooks.history import History


def test_systemd_runs_the_service_and_starts_it_anew_when_it_is_wedged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0 or not under_systemd.SYSTEMD or shutil.which("unshare") is None:
        pytest.skip("a systemd of its own needs root, unshare and systemd")
    for name in [name for name in os.environ if name.startswith(("GIT_", "SHAPEUP", "XDG_", "DBUS_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", os.fspath(tmp_path))
    repo = History(tmp_path / "my 'own' %h $HOME repo")
    repo.commit("one", a="1\n")
    run = SmallRun(repo.root, with_receipt=True)
    words = ["unshare", "-m", "--propagation", "private", sys.executable, under_systemd.__file__, os.fspath(repo.root)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode == under_systemd.NOT_HERE or "unshare failed" in done.stderr:
        pytest.skip("this machine lets no second systemd start")
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    walls = seen.pop("doctor")
    assert seen == {
        "active": "active",
        "status": f"watching {repo.root}",
        "seccomp": ["Seccomp:\t2"],
        "restarts": "1",
        "new_pid": True,
        "uninstall while enabled": 1,
        "ended": "inactive",
        "result": "success",
    }
    assert (walls["service"], walls["daemon"], walls["watch"]) == (True, True, True)
    assert [row["outcome"] for row in run.rows("receipts/ingest.jsonl")] == ["applied"]
    left = sorted(path.name for path in (tmp_path / ".config").rglob("*") if not path.is_dir())
    assert left == ["quick.conf"]
