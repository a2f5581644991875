"""Real daemons over the same replays: watching, killed between steps, and catching up at once. Source: issue 2 "Must show".

One process watches a group of folders, as `shapeupd run --repo A --repo B` does: most of what a daemon costs is its start. What
must come out is what the reconciler gives in-process, which test_replay.py holds against the record.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pytest

from tests.corpus.explain import expect
from tests.corpus.footprint import Footprint, changed_paths, footprint, whole_tree
from tests.corpus.in_process import InProcess, replay
from tests.corpus.index_claims import index_complaints
from tests.corpus.logical_state import is_index, logical_state
from tests.corpus.oracle import ALL, World
from tests.corpus.real_daemon import RealDaemon, land, run_once, settings_text
from tests.corpus.replay_cases import CORPUS, OWN, Case, Step, case_folders, corpus_params, load_case, write_files
from tests.corpus.tally import count_same

GROUP = 7


def group_params() -> list[Any]:
    """Groups of cases of about the same length; our own cases are a group of their own."""
    folders = sorted(case_folders(CORPUS / "replay"), key=lambda folder: len(load_case(folder).steps))
    left = iter(folders)
    groups = list(iter(lambda: list(islice(left, GROUP)), []))
    params = corpus_params(
        [Path(f"corpus-{n}") for n in range(len(groups))], f"no replays below {CORPUS} (set SHAPEUP_CORPUS)"
    )
    found = [
        pytest.param(groups[n], id=param.id, marks=param.marks) if groups else param for n, param in enumerate(params)
    ]
    return [pytest.param(case_folders(OWN), id="own"), *found]


GROUPS = pytest.mark.parametrize("folders", group_params())


class Stage(NamedTuple):
    """One case under one setting in a folder of its own, with what must come out after each step."""

    case: Case
    checked: bool
    root: Path
    steps: tuple[Step, ...]
    wanted: tuple[Footprint, ...]

    def drops(self) -> tuple[Step, ...]:
        return self.case.drops(checked=self.checked)

    def named(self) -> str:
        return f"{self.case.name}, attestation {'required' if self.checked else 'off'}"

    def told(self, step: Step) -> str:
        return f"{self.named()}, step {step.number} ({step.stem})"


def stages(folders: list[Path], base: Path, modes: tuple[bool, ...]) -> list[Stage]:
    made = []
    for folder in folders:
        for checked in modes:
            case, root = load_case(folder), base / f"{folder.name}-{'require' if checked else 'off'}"
            write_files(root, case.before)
            (root / ".shapeup").mkdir(parents=True, exist_ok=True)
            (root / ".shapeupd.toml").write_text(settings_text("require" if checked else "off"))
            steps = case.checked if checked else case.steps
            if steps:
                made.append(Stage(case, checked, root, steps, replay(folder, checked=checked).footprints))
    return made


def rounds(made: list[Stage]) -> Iterator[list[tuple[Stage, Step, Footprint]]]:
    """The first steps of every stage, then the second ones, and so on."""
    for at in range(max((len(stage.steps) for stage in made), default=0)):
        yield [(stage, stage.steps[at], stage.wanted[at]) for stage in made if at < len(stage.steps)]


def drop(stage: Stage, step: Step) -> None:
    if step.path in stage.case.results:
        land(stage.root, step.path, stage.case.results[step.path])


@GROUPS
def test_a_running_daemon_does_the_same_and_the_same_bytes_again_change_nothing(
    folders: list[Path], quick_root: Path
) -> None:
    made = stages(folders, quick_root, (False, True))
    with RealDaemon(*[stage.root for stage in made]) as daemon:
        for steps in rounds(made):
            for stage, step, _ in steps:
                drop(stage, step)
            for stage, step, wanted in steps:
                daemon.sync(stage.root)
                assert footprint(stage.root) == wanted, stage.told(step)
                count_same("running daemon, one by one", stage.named(), step.number)
        trees = [whole_tree(stage.root) for stage in made]
        drop_again_in_every_way(daemon, made)
        for stage, tree in zip(made, trees, strict=True):
            assert changed_paths(tree, whole_tree(stage.root)) == [], stage.case.name
        assert daemon.stop() == 0
    for stage, tree in zip(made, trees, strict=True):
        assert not list(stage.root.glob(".shapeup/*/.ingest.lock"))
        InProcess(stage.root, "require" if stage.checked else "off").close()
        assert changed_paths(tree, whole_tree(stage.root)) == [], f"{stage.case.name}, restarted"


def drop_again_in_every_way(daemon: RealDaemon, made: list[Stage]) -> None:
    """Touched, renamed over, written in place, and looked at by two rescans more."""
    for stage in made:
        for step in stage.drops():
            os.utime(stage.root / step.path)
    for stage in made:
        daemon.sync(stage.root)
        for step in stage.drops():
            drop(stage, step)
    for stage in made:
        daemon.sync(stage.root)
        for step in stage.drops():
            with open(stage.root / step.path, "r+b") as file:
                file.write(stage.case.results[step.path])
    for stage in made:
        daemon.sync(stage.root)
        daemon.sync(stage.root)


@GROUPS
def test_kill_9_between_any_two_steps_changes_nothing(folders: list[Path], quick_root: Path) -> None:
    """Every step is followed by a kill: after even ones once they are settled, after odd ones the moment they landed."""
    made = stages(folders, quick_root, (False,))
    daemon = RealDaemon(*[stage.root for stage in made])
    daemon.start()
    try:
        for at, steps in enumerate(rounds(made)):
            for stage, step, wanted in steps:
                drop(stage, step)
                if at % 2:
                    daemon.sync(stage.root)
                    assert footprint(stage.root) == wanted, stage.told(step)
            daemon.kill()
            daemon.start()
            for stage, step, wanted in steps:
                daemon.sync(stage.root)
                assert footprint(stage.root) == wanted, f"restarted: {stage.told(step)}"
                count_same("daemon killed after every step", stage.named(), step.number)
    finally:
        daemon.kill()


def catch_up_order(stage: Stage) -> tuple[Step, ...]:
    """Each result once, by when its order was compiled, then by stem; orders without a time come last. Source: C10."""
    refused = replay(stage.case.folder, checked=stage.checked).refused_orders

    def key(step: Step) -> tuple[float, str]:
        order = str(PurePosixPath(step.path).parent.parent / "orders" / f"{step.stem}.json")
        try:
            at = datetime.fromisoformat(json.loads(stage.case.before[order])["compiled_at"])
        except (KeyError, ValueError, TypeError):
            return float("inf"), step.stem
        moment = at if at.tzinfo else at.replace(tzinfo=UTC)
        return float("inf") if order in refused else moment.timestamp(), step.stem

    once = {step.path: step for step in reversed(stage.drops())}
    return tuple(sorted(once.values(), key=key))


@GROUPS
def test_run_once_over_all_results_at_once_ends_where_catching_up_in_order_leads(
    folders: list[Path], quick_root: Path
) -> None:
    made = stages(folders, quick_root, (False, True))
    for stage in made:
        write_files(stage.root, {step.path: stage.case.results[step.path] for step in stage.drops()})
    ended = run_once(*[stage.root for stage in made])
    is_clean = True
    for stage in made:
        order, found = catch_up_order(stage), footprint(stage.root)
        if [step.path for step in order] == list(dict.fromkeys(step.path for step in stage.drops())):
            wanted = stage.wanted[-1]
            # What may still be on its way is refused half a second after the rest, so the record may have another order.
            assert sorted(found.record, key=str) == sorted(wanted.record, key=str), stage.case.name
            assert found._replace(record=()) == wanted._replace(record=()), stage.case.name
        elif order:
            world = World(stage.checked, replay(stage.case.folder, checked=stage.checked).refused_orders)
            assert_as_wanted(stage, found, expect(stage.case, order, ALL, world).states[-1])
        for step in order:
            count_same("run --once, all results at once", stage.named(), step.number)
        outcomes = replay(stage.case.folder, checked=stage.checked).outcomes
        is_clean &= not found.rejections and all(ours.outcome != "pending" for ours in outcomes)
    assert ended.returncode == (0 if is_clean else 1), ended.stderr


def assert_as_wanted(stage: Stage, found: Footprint, wanted: dict[str, bytes]) -> None:
    """The state is what the fixes give for this order; an index is a view of the task files as they are."""
    logical, tree = logical_state(wanted), whole_tree(stage.root)
    indexes = {path for path in logical.keys() | found.state.keys() if is_index(path)}
    for path in (logical.keys() | found.state.keys()) - indexes:
        assert found.state.get(path) == logical.get(path), f"{stage.case.name}: {path}"
    for path in indexes:
        complaints = index_complaints(path, stage.case.before, tree, must_exist=path in wanted)
        assert not list(complaints), stage.case.name
