"""The real pre-commit, lefthook and husky: found on the PATH, or fetched once into a temporary folder where that is allowed.

Allowed means CI is set (then they must be there) or SHAPEUP_TOOLS=1; else a test that needs one skips and says so.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

import pytest

from daemon.cli import main

_FETCH_S = 300
_PYTHON_TOOLS = ("pre-commit", "lefthook")


def tool(name: str) -> Path:
    """The folder to put on the PATH so that the tool is found. Skips the test where it may not be fetched."""
    found = shutil.which(name)
    if found:
        return Path(found).parent
    if not (os.environ.get("CI") or os.environ.get("SHAPEUP_TOOLS") == "1"):
        pytest.skip(f"{name} is not installed; SHAPEUP_TOOLS=1 lets the tests fetch it")
    return _fetched_by_pip() if name in _PYTHON_TOOLS else _fetched_by_npm(name)


@lru_cache
def _scratch() -> Path:
    import atexit

    folder = Path(tempfile.mkdtemp(prefix="shapeup-tools-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@lru_cache
def _fetched_by_pip() -> Path:
    folder = _scratch() / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=_FETCH_S)
    fetch = [folder / "bin" / "python", "-m", "pip", "install", "-q", *_PYTHON_TOOLS]
    subprocess.run(fetch, check=True, timeout=_FETCH_S, capture_output=True)
    return folder / "bin"


@lru_cache
def _fetched_by_npm(name: str) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        if os.environ.get("CI"):
            pytest.fail("CI must have npm")
        pytest.skip("npm is not installed")
    folder = _scratch() / "npm"
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", os.fspath(folder), name]
    subprocess.run(command, check=True, timeout=_FETCH_S, capture_output=True)
    return folder / "node_modules" / ".bin"


def command(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """One shapeupd command without a process of its own: these tests run hundreds."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["--repo", os.fspath(cwd), *words])
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())
