"""Run as `unshare -m python under_systemd.py REPOSITORY`: a user's systemd of its own runs the installed service, and what it did is printed.

It has a /run of its own, so nothing outside notices. Exits with 77 where this machine does not let a systemd start.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO

SYSTEMD = next((path for path in ("/usr/lib/systemd/systemd", "/lib/systemd/systemd") if os.path.exists(path)), "")
RUNTIME = "/run/shapeupd-test"
COMMAND = (sys.executable, "-I", "-m", "daemon")
PATIENCE_S = 60
NOT_HERE = 77
QUICK = "[Service]\nWatchdogSec=1500ms\nRestartSec=100ms\n"


def output(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode:
        raise SystemExit(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def shown(unit: str, name: str) -> str:
    return output("systemctl", "--user", "show", "--property", name, "--value", unit)


def start_systemd() -> subprocess.Popen[bytes]:
    """A user's systemd that says it is ready. Exits with 77 where it does not start."""
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], capture_output=True, check=False).returncode:
        raise SystemExit(NOT_HERE)
    os.makedirs("/run/systemd/system")  # systemd looks for it to know that the machine was booted with systemd
    os.mkdir(RUNTIME, 0o700)
    os.environ["XDG_RUNTIME_DIR"] = RUNTIME
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(f"{RUNTIME}/test-notify")
        ear.settimeout(PATIENCE_S)
        env = {**os.environ, "NOTIFY_SOCKET": f"{RUNTIME}/test-notify"}
        systemd = subprocess.Popen([SYSTEMD, "--user"], env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        ear.settimeout(0.2)
        while True:
            try:
                if b"READY=1" in ear.recv(8192):
                    return systemd
            except TimeoutError:
                if systemd.poll() is not None:
                    raise SystemExit(NOT_HERE) from None


def next_ready(log: IO[str]) -> str:
    return str(json.loads(log.readline())["event"])


def land(root: Path, stem: str) -> None:
    """An order and its result, as living.SmallRun writes them; this process has no access to the tests' packages."""
    order = {
        "schema_version": 1,
        "order_id": f"cart/{stem}",
        "compiled_at": "2026-03-01T10:00:00.000Z",
        "worker": "task-executor",
        "mode": "orchestrated",
        "operation": "execute",
        "payload": {},
    }
    task = {"task_id": "TASK-1", "status": "done", "ac_results": []}
    result = {"schema_version": 1, "order_id": f"cart/{stem}", "worker": "task-executor", "status": "done"}
    for folder, value in (("orders", order), ("results", result | {"task_results": [task]})):
        target = root / ".shapeup" / "cart" / folder / f"{stem}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(value))


def main(root: Path) -> dict[str, object]:
    """Install, start, wedge, stop, uninstall; what systemd said at each step."""
    os.chdir(root)
    installed = output(*COMMAND, "install", "--service", "systemd").splitlines()
    start = shlex.split(next(line for line in installed if "systemctl" in line).removeprefix("next: "))
    unit = start[-1]
    drop_in = Path(os.environ["HOME"], ".config/systemd/user/shapeupd@.service.d/quick.conf")
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text(QUICK)
    systemd = start_systemd()
    try:
        output(*start)  # comes back when READY=1 was said
        seen: dict[str, object] = {"active": shown(unit, "ActiveState"), "status": shown(unit, "StatusText")}
        pid = int(shown(unit, "MainPID"))
        seen["seccomp"] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "Seccomp:" in line]
        words = (*COMMAND, "log", "-f", "--json", "--event", "daemon.ready")
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as log:
            assert log.stdout is not None
            next_ready(log.stdout)
            os.kill(pid, signal.SIGSTOP)
            land(root, "core1-r1-a1")
            next_ready(log.stdout)
            log.kill()
        output(*COMMAND, "sync")
        seen |= {"restarts": shown(unit, "NRestarts"), "new_pid": int(shown(unit, "MainPID")) != pid}
        checks = subprocess.run([*COMMAND, "doctor", "--json"], capture_output=True, text=True, check=False).stdout
        seen["doctor"] = {row["name"]: row["ok"] for row in json.loads(checks)["checks"]}
        refused = subprocess.run([*COMMAND, "uninstall"], capture_output=True, text=True, check=False)
        seen["uninstall while enabled"] = refused.returncode
        fix = next(line for line in refused.stderr.splitlines() if "fix:" in line)
        output(*shlex.split(fix.partition("fix: ")[2].partition(", then")[0]))
        seen |= {"ended": shown(unit, "ActiveState"), "result": shown(unit, "Result")}
        output(*COMMAND, "uninstall")
        return seen
    finally:
        systemd.send_signal(signal.SIGTERM)
        systemd.wait(PATIENCE_S)


if __name__ == "__main__":
    if not SYSTEMD:
        raise SystemExit(NOT_HERE)
    print(json.dumps(main(Path(sys.argv[1]))))
