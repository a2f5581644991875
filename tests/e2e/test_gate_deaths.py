"""A gate on its way to disk: beside a daemon, under a lock of somebody else, on a full disk, and dying at every system call.
Source: protocol §4.2, §8.6, advisor P5.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from daemon import gate_record
from daemon.gate_record import Locked, record_gate
from daemon.ingest_lock import IngestLock
from parsers.answers import GATES
from parsers.round_ledger import Decision
from parsers.tree import Unreadable
from tests.crash import dying
from tests.crash import small_run as small
from tests.e2e.gate_words import (
    GATES_PATH,
    INTENT,
    LEDGER_PATH,
    crossings_of,
    gates_of,
    new_repository,
    resolve,
    write,
)
from tests.e2e.living import COMMAND, SLUG, SmallRun, daemon


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return new_repository(tmp_path)


# --- beside a daemon -------------------------------------------------------------------------------------------------


def test_gates_and_results_are_each_recorded_once_beside_a_daemon(root: Path) -> None:
    run = SmallRun(root, with_receipt=True)
    crossed = [gate_id for gate_id in GATES for _ in range(2)]
    with daemon(root) as living, ThreadPoolExecutor(4) as pool:
        told = [pool.submit(resolve, root, gate_id, "--slug", SLUG, "--preset", "ci") for gate_id in crossed]
        for attempt in range(1, 21):
            run.order(f"cart-r1-a{attempt}")
            run.result(f"cart-r1-a{attempt}", notes=f"{attempt}")
        assert [one.result()[0] for one in told] == [0] * len(crossed)
        living.sync()
        assert not living.events("daemon.error")
        assert len(living.events("result.applied")) + len(living.events("result.pending")) >= 20
    assert sorted(row[0] for row in gates_of(root)) == sorted(crossed)  # type: ignore[type-var]
    assert sorted(question for question, _, _ in crossings_of(root)) == sorted(f"GATE {gate_id}" for gate_id in crossed)
    assert not (root / f".shapeup/{SLUG}/.ingest.lock").exists()


@pytest.fixture
def run_root(tmp_path: Path) -> Path:
    (tmp_path / ".shapeup" / SLUG).mkdir(parents=True)
    return tmp_path


def _lock(root: Path, *, holds_repository: bool) -> IngestLock:
    return IngestLock(root, SLUG, lambda: small.NOW, holds_repository=holds_repository)


@pytest.mark.parametrize("holds", [True, False])
def test_neither_a_daemon_nor_a_command_takes_the_lock_of_the_other(run_root: Path, holds: bool) -> None:
    """To the holder of the repository a lock of shapeupd is dead at once; that of a command beside it must not look like one."""
    script = (
        "import sys; from pathlib import Path; from daemon import clock; from daemon.ingest_lock import IngestLock;"
        f"IngestLock(Path({os.fspath(run_root)!r}), {SLUG!r}, clock.now, holds_repository={holds}).take();"
        "print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-I", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert not _lock(run_root, holds_repository=not holds).take()
        other.kill()
    assert _lock(run_root, holds_repository=not holds).take()  # and the dead lose theirs (its clock is ours here: old)


def test_a_gate_of_a_run_that_stays_locked_is_not_answered(run_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_record, "LOCK_PATIENCE_S", 0.1)
    assert _lock(run_root, holds_repository=True).take()
    with pytest.raises(Locked):
        record_gate(run_root, SLUG, ROW, CROSSING, lambda: small.NOW)
    assert gates_of(run_root) == crossings_of(run_root) == []


def test_a_full_disk_answers_nothing_and_is_made_good(root: Path) -> None:
    words = shlex.join([*COMMAND, "gate", "resolve", "L0", "--slug", SLUG, "--preset", "ci", "--json"])
    for _ in range(2):
        ran = subprocess.run(
            ["sh", "-c", f"ulimit -f 0; exec {words}"], cwd=root, capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stdout) == (1, "")
        assert "not recorded, so GATE L0 is not answered" in ran.stderr
    assert gates_of(root) == crossings_of(root) == []
    assert resolve(root, "L0", "--slug", SLUG, "--preset", "ci")[0] == 0
    assert (len(gates_of(root)), len(crossings_of(root))) == (1, 1)


# --- death -----------------------------------------------------------------------------------------------------------

ROW = {
    "gate": "L2",
    "status": "ok",
    "decision": "proceed",
    "source": "preset:ci",
    "note": None,
    "round": 2,
    "at": "2036-04-05T06:07:08.090Z",
    "run_id": None,
}
CROSSING = Decision("2", "—", "gate", "GATE L2", "proceed", "preset:ci")
EARLIER = ROW | {"at": "2036-04-05T06:07:07.000Z", "note": "earlier"}
_REFUSAL = dying.refusal()


def _fresh(root: Path) -> None:
    (root / ".shapeup").mkdir()


def _same_before(root: Path) -> None:
    """The same gate was crossed before, and somebody's row has no end."""
    record_gate(root, SLUG, EARLIER, CROSSING, lambda: small.NOW)
    with open(root / GATES_PATH, "ab") as file:
        file.write(b'{"gate":"L1b","status":"ask"}')
    with open(root / LEDGER_PATH, "ab") as file:
        file.write(b"\n## Notes\n")


def _record(root: Path) -> None:
    record_gate(root, SLUG, ROW, CROSSING, lambda: small.NOW)


@pytest.mark.skipif(_REFUSAL is not None, reason=str(_REFUSAL))
@pytest.mark.parametrize("prepare", [_fresh, _same_before], ids=["fresh", "the same before"])
def test_a_death_at_any_system_call_ends_in_one_row_each(prepare: Callable[[Path], None], tmp_path: Path) -> None:
    template, root = tmp_path / "template", tmp_path / "root"
    template.mkdir()
    prepare(template)
    small.copy_tree(template, root)
    total = dying.run_until(lambda: _record(root), 1 << 40)
    wanted = small.tree_bytes(root)
    assert total
    before = len(crossings_of(template))
    between = deaths = 0
    for entry in small.sample(range(1, total + 1), 40):
        deaths += 1
        small.copy_tree(template, root)
        assert dying.run_until(lambda: _record(root), entry) is None
        between += len(gates_of(root)) > len(gates_of(template)) and len(crossings_of(root)) == before
        is_whole = len(crossings_of(root)) > before and not (root / INTENT).exists()
        if entry % 2:
            _other_gate_comes_next(root, before)
        elif is_whole:  # it died on its way out
            assert (gates_of(root).count(("L2", "ok", 2)), len(crossings_of(root))) == (before + 1, before + 1)
        else:
            _record(root)
            assert not small.difference(small.tree_bytes(root), wanted), f"died at {entry} of {total}"
    print(
        f"gates, {prepare.__name__}: {deaths} deaths at {total} system calls, {between} between the files, all made good"
    )
    assert between


def _other_gate_comes_next(root: Path, before: int) -> None:
    """Whatever was half done is there as a whole or not at all, and the other gate is there once."""
    ask = ROW | {"gate": "L4", "status": "ask"}
    record_gate(root, SLUG, ask, None, lambda: small.NOW)
    rows = gates_of(root)
    assert rows.count(("L4", "ask", 2)) == 1
    assert rows.count(("L2", "ok", 2)) == len(crossings_of(root))
    assert len(crossings_of(root)) in (before, before + 1)
    assert not (root / INTENT).exists()


def test_a_row_that_somebody_took_out_while_it_was_half_done_is_put_in_once(run_root: Path) -> None:
    record_gate(run_root, SLUG, EARLIER, CROSSING, lambda: small.NOW)
    _leave_half_done(run_root)
    (run_root / LEDGER_PATH).write_text("# Another branch\n")
    _record(run_root)
    assert (len(gates_of(run_root)), len(crossings_of(run_root))) == (2, 1)
    assert (run_root / LEDGER_PATH).read_text().startswith("# Another branch\n")


def _leave_half_done(root: Path) -> None:
    """As a death between the two files leaves it."""
    size = (root / GATES_PATH).stat().st_size
    text = json.dumps(ROW, separators=(",", ":")) + "\n"
    write(root, INTENT, {"schema": 1, "offset": size, "text": text, "decision": list(CROSSING), "standing": 1})
    with open(root / GATES_PATH, "a") as file:
        file.write(text)


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "null", '{"offset":"x"}', "\x00", '{"offset":0,"text":"","decision":[1],"standing":0}']
)
def test_a_damaged_note_is_told_and_nothing_is_written(run_root: Path, content: str) -> None:
    write(run_root, INTENT, content)
    with pytest.raises(Unreadable) as stopped:
        _record(run_root)
    assert (stopped.value.fault.code, stopped.value.fault.where) == ("E-JOURNAL", INTENT)
    assert gates_of(run_root) == crossings_of(run_root) == []


@pytest.mark.parametrize("path", [LEDGER_PATH, GATES_PATH, INTENT, f"shapeup/{SLUG}"])
def test_a_link_in_a_files_place_is_never_written_through(
    run_root: Path, path: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target = tmp_path_factory.mktemp("target")
    (run_root / path).parent.mkdir(parents=True, exist_ok=True)
    (run_root / path).symlink_to(target if path.endswith(SLUG) else target / "file")
    with pytest.raises(Unreadable):
        _record(run_root)
    assert not list(target.iterdir())
    (run_root / path).unlink()
    _record(run_root)
    assert (len(gates_of(run_root)), len(crossings_of(run_root))) == (1, 1)
