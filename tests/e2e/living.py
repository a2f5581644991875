"""A real `shapeupd run` process and the small run it watches: start, wait for events, stop. Nothing here sleeps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daemon.sockets import ask

PATIENCE_S = 60.0
SLUG = "cart"
COMMAND = (sys.executable, "-I", "-m", "daemon")

Row = dict[str, Any]


def shapeupd(*words: str, cwd: Path | None = None, timeout: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
    """One command, as a user would run it."""
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, cwd=cwd, timeout=timeout, check=False)


class Daemon:
    """A running daemon and everything its log has said."""

    def __init__(self, *roots: Path) -> None:
        repos = [word for root in roots for word in ("--repo", os.fspath(root))]
        self.root = roots[0]
        self.rows: list[Row] = []
        self._heard = threading.Condition()
        self.process = subprocess.Popen(
            [*COMMAND, "run", *repos, "--log-format", "json"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._heard:
                try:
                    self.rows.append(json.loads(line))
                except ValueError:
                    self.rows.append({"event": "stderr", "subject": None, "text": line.decode(errors="replace")})
                self._heard.notify_all()
        with self._heard:
            self.rows.append({"event": "end of stream", "subject": None})
            self._heard.notify_all()

    def wait_for(self, event: str, subject: str | None = None, *, count: int = 1) -> Row:
        """The `count`-th such event since the start."""

        def found() -> list[Row]:
            return [row for row in self.rows if row["event"] == event and subject in (None, row["subject"])]

        with self._heard:
            ended = [row for row in self.rows if row["event"] == "end of stream"]
            self._heard.wait_for(lambda: len(found()) >= count or bool(ended), PATIENCE_S)
            rows = found()
        assert len(rows) >= count, f"no {event} {subject} (x{count}) in {self.rows}"
        return rows[count - 1]

    def events(self, event: str, subject: str | None = None) -> list[Row]:
        """Every such event so far."""
        return [row for row in self.rows if row["event"] == event and subject in (None, row["subject"])]

    def sync(self) -> Mapping[str, Any]:
        """Wait until everything that landed is settled."""
        answer = ask(self.root, "sync", timeout_s=PATIENCE_S)
        assert answer is not None
        assert "error" not in answer, answer
        return answer

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it with a signal; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return status


@contextmanager
def daemon(*roots: Path) -> Iterator[Daemon]:
    """A daemon that is ready; killed at the end if it still runs."""
    living = Daemon(*roots)
    try:
        living.wait_for("daemon.ready", count=len(roots))
        yield living
    finally:
        living.stop(signal.SIGKILL)


class SmallRun:
    """A feature with three tasks, written as agents would write it."""

    def __init__(self, root: Path, *, with_receipt: bool = False, with_index: bool = True) -> None:
        self.root = root
        self.local = root / ".shapeup" / SLUG
        self.task("TASK-1", "ready", (), ("adds an item", "rejects zero"))
        self.task("TASK-2", "blocked", ("TASK-1",), ("removes an item",))
        self.task("TASK-3", "blocked", ("TASK-1", "TASK-2"), ("shows the total",))
        if with_index:
            rows = ["| ID | Title | Status | Depends On |", "|---|---|---|---|"]
            rows += ["| TASK-1 | One, ready or blocked | ⬜ ready | — |", "| TASK-2 | Two | 🚫 blocked | TASK-1 |"]
            rows += ["| TASK-3 | Three | 🚫 blocked | TASK-1, TASK-2 |", "", "⬜ 0 / 3 tasks complete", ""]
            self.write("tasks/_index.md", "\n".join(rows))
        if with_receipt:
            self.receipt()

    def write(self, path: str, content: str | Mapping[str, Any]) -> Path:
        """Write one file below the feature's LOCAL folder."""
        text = content if isinstance(content, str) else json.dumps(content)
        target = self.local / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    def receipt(self) -> None:
        self.write(
            "receipt.json",
            {"slug": SLUG, "started_at": "2026-03-01T09:00:00.000Z", "started": True, "intake_sha256": ""},
        )

    def task(self, task_id: str, status: str, needs: tuple[str, ...], criteria: tuple[str, ...]) -> None:
        boxes = "\n".join(f"- [ ] {text}" for text in criteria)
        head = f"id: {task_id}\ntitle: {task_id}\nstatus: {status}\ndepends_on: [{', '.join(needs)}]"
        self.write(f"tasks/{task_id}.md", f"---\n{head}\n---\n\n## Acceptance Criteria\n\n{boxes}\n")

    def order(self, stem: str, **more: Any) -> Path:
        order = {
            "schema_version": 1,
            "order_id": f"{SLUG}/{stem}",
            "compiled_at": "2026-03-01T10:00:00.000Z",
            "worker": "task-executor",
            "mode": "orchestrated",
            "operation": "execute",
            "payload": {},
        }
        return self.write(f"orders/{stem}.json", order | more)

    def result_value(self, stem: str, task_id: str = "TASK-1", criteria: tuple[str, ...] = (), **more: Any) -> Row:
        passed = [{"ac": text, "result": "pass"} for text in criteria]
        task = {"task_id": task_id, "status": "done", "ac_results": passed}
        value = {"schema_version": 1, "order_id": f"{SLUG}/{stem}", "worker": "task-executor", "status": "done"}
        return value | {"task_results": [task]} | more

    def result(self, stem: str, task_id: str = "TASK-1", criteria: tuple[str, ...] = (), **more: Any) -> Path:
        return self.write(f"results/{stem}.json", self.result_value(stem, task_id, criteria, **more))

    def text(self, path: str) -> str:
        return (self.local / path).read_text(encoding="utf-8")

    def rows(self, path: str) -> list[Row]:
        target = self.local / path
        return [json.loads(line) for line in target.read_text().splitlines()] if target.exists() else []

    def status(self, task_id: str) -> str:
        lines = self.text(f"tasks/{task_id}.md").splitlines()
        return next(line.removeprefix("status: ") for line in lines if line.startswith("status: "))

    def rejection(self, name: str) -> Row:
        value: Row = json.loads(self.text(f"rejections/{name}.json"))
        return value

    def state(self, ignore: Callable[[str], bool] = lambda _: False) -> dict[str, bytes]:
        """Every file of the LOCAL tree but the log, the process's own files and the checkpoint mark."""
        process = ("shapeupd.log", "daemon.json", "daemon.lock", "checkpoint.json", "audit.json")
        found = {}
        for path in sorted((self.root / ".shapeup").rglob("*")):
            name = os.fspath(path.relative_to(self.root))
            if path.is_file() and path.name not in process and not ignore(name):
                found[name] = path.read_bytes()
        return found
