"""Counts what the replays came to and prints it at the end of the run, whatever the verbosity. Source: issue 2 "Must show"."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.corpus.replay_cases import MEMORY
from tests.corpus.tally import SAME, TALLY


@pytest.fixture(scope="session", autouse=True)
def _private_sockets() -> Iterator[None]:
    """Sockets of our own in a short path, and nobody's settings."""
    with tempfile.TemporaryDirectory(prefix="sud", dir="/tmp") as folder, pytest.MonkeyPatch.context() as patch:
        os.chmod(folder, 0o700)
        patch.setenv("XDG_RUNTIME_DIR", folder)
        patch.setenv("XDG_CONFIG_HOME", folder)
        yield


@pytest.fixture
def quick_root() -> Iterator[Path]:
    """A folder in memory where there is such a thing: these tests look at what is written, not at how durable it is."""
    with tempfile.TemporaryDirectory(prefix="replay-", dir=MEMORY) as name:
        yield Path(name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for way, steps in sorted(TALLY.items()):
        cases = {case for case, _ in steps}
        rules = Counter(rule for found in steps.values() for rule in found)
        equal = sum(not found for found in steps.values())
        told = ", ".join(
            f"{rule} {count}" for rule, count in sorted(rules.items(), key=lambda item: (-item[1], item[0]))
        )
        line = f"{way}: {len(cases)} cases, {len(steps)} steps, {equal} equal, {len(steps) - equal} divergent"
        terminalreporter.write_line(line + (f" (by rule: {told})" if told else ""))
    for way, found in sorted(SAME.items()):
        cases = {case for case, _ in found}
        terminalreporter.write_line(
            f"{way}: {len(cases)} cases and settings, {len(found)} steps, the same as in-process"
        )
