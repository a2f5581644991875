"""Where the crash tests work: in memory where the machine has a place for it, because thousands of fsyncs prove nothing more."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A fresh folder, gone afterwards."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="shapeup-crash-", dir=_MEMORY))
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="shapeup-crash-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
