"""Every part of shapeupd missing or broken: the hook still decides or refuses with one remedy, soon and without a traceback. Source: targets 22."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from parsers.policy_file import Contract, Policy
from tests.e2e.living import COMMAND
from tests.hooks.gated import CART, ENV, HOOKS, PROJECT, SHELLS, TAX, Gated

HANG_S = (
    20  # what a loaded machine may take for a whole commit; that no step waits long is asserted by what the hook says
)


@pytest.fixture(params=["dash", "bash"])
def gated(request: pytest.FixtureRequest, tmp_path: Path) -> Gated:
    words = SHELLS[request.param]
    if shutil.which(words[0]) is None:
        pytest.skip(f"there is no {words[0]} on this machine")
    gated = Gated(tmp_path / "repo", words)
    gated.orders(CART)
    return gated


def verdicts(gated: Gated, inside: str | None, outside: str | None) -> None:
    """What is said of an allowed and of a foreign path; None: the commit must pass. A refusal shows one remedy."""
    name = len(gated.git("rev-list", "HEAD").split())
    for path, expected in ((f"src/cart/{name}", inside), (f"docs/{name}", outside)):
        said = gated.commit(path)
        gated.git("reset", "-q", "--hard")
        if expected is None:
            assert said is None, (path, said)
            continue
        assert said is not None, path
        assert expected in said, said
        assert "shapeupd:" in said
        assert said.count("  fix: ") == 1, said
        assert "Traceback" not in said
        assert "Error" not in said, said


def test_no_daemon_has_ever_run(gated: Gated) -> None:
    for name in ("policy.json", "policy.paths"):
        (gated.root / ".shapeup" / name).unlink()
    verdicts(gated, None, "OUTSIDE")


def test_a_daemon_died_and_left_its_socket_and_its_note(gated: Gated) -> None:
    short = Path(tempfile.mkdtemp(prefix="s-"))
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(short / "x.sock"))
    note = {"pid": 4_000_000, "socket": str(short / "x.sock"), "started_at": "2026-03-01T10:00:00.000Z"}
    gated.write(".shapeup/daemon.json", json.dumps(note))
    verdicts(gated, None, "OUTSIDE")
    (gated.root / ".shapeup/policy.json").unlink()
    (gated.root / ".shapeup/policy.paths").unlink()
    verdicts(gated, None, "OUTSIDE")
    shutil.rmtree(short)


def test_the_venv_is_gone(gated: Gated) -> None:
    gated.install(HOOKS, python="/nowhere/venv/bin/python", main="/nowhere/venv/hooks/__main__.py")
    verdicts(gated, None, "run `shapeupd install` again")


def test_the_venv_lost_its_packages(gated: Gated, tmp_path: Path) -> None:
    gated.install(HOOKS, main=str(tmp_path / "gone/hooks/__main__.py"))
    verdicts(gated, None, "run `shapeupd install` again")


@pytest.mark.parametrize("status", [126, 127])
def test_python_is_there_and_cannot_start(gated: Gated, tmp_path: Path, status: int) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexit {status}\n")
    python.chmod(0o755)
    gated.install(HOOKS, python=str(python))
    verdicts(gated, None, "run `shapeupd install` again")


def test_python_is_no_program_at_all(gated: Gated, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_bytes(b"\x7fELF nonsense")
    python.chmod(0o755)
    gated.install(HOOKS, python=str(python))
    said = gated.commit("docs/x")
    assert said is not None
    gated.git("reset", "-q", "--hard")
    assert gated.commit("src/cart/x") is None


def test_no_python_and_a_stale_policy_refuse_all(gated: Gated) -> None:
    gated.orders(CART, TAX, policy=Policy("old", (CART,)), is_fresh=False)
    gated.install(HOOKS, python="/nowhere/python")
    verdicts(gated, "run `shapeupd install` again", "run `shapeupd install` again")


CORRUPTIONS: dict[str, Callable[[Path, Path], object]] = {
    "empty": lambda lines, policy: (lines.write_text(""), policy.write_text("")),
    "torn": lambda lines, policy: (
        lines.write_text(lines.read_text()[:-3]),
        policy.write_text(policy.read_text()[:-9]),
    ),
    "garbage": lambda lines, policy: (lines.write_bytes(os.urandom(999)), policy.write_bytes(os.urandom(999))),
    "NUL bytes": lambda lines, policy: (lines.write_bytes(bytes(4096)), policy.write_bytes(bytes(4096))),
    "an old schema": lambda lines, policy: (
        lines.write_text(lines.read_text().replace("policy 1", "policy 0", 1)),
        policy.write_text(policy.read_text().replace('"schema": 1', '"schema": 0')),
    ),
    "a newer schema": lambda lines, policy: (
        lines.write_text(lines.read_text().replace("policy 1", "policy 2", 1)),
        policy.write_text(policy.read_text().replace('"schema": 1', '"schema": 2')),
    ),
    "one line too few": lambda lines, policy: (
        lines.write_text(lines.read_text().replace("+src/cart/*\n", "", 1)),
        policy.unlink(),
    ),
    "folders": lambda lines, policy: [(path.unlink(), path.mkdir()) for path in (lines, policy)],
    "links": lambda lines, policy: [(path.unlink(), path.symlink_to("/etc/passwd")) for path in (lines, policy)],
    "links to nowhere": lambda lines, policy: [(path.unlink(), path.symlink_to("nowhere")) for path in (lines, policy)],
    "pipes": lambda lines, policy: [(path.unlink(), os.mkfifo(path)) for path in (lines, policy)],
}


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_a_broken_policy_is_computed_anew_and_never_believed(gated: Gated, kind: str) -> None:
    lines, policy = gated.root / ".shapeup/policy.paths", gated.root / ".shapeup/policy.json"
    stamp = lines.stat().st_mtime_ns
    CORRUPTIONS[kind](lines, policy)
    for path in (lines, policy):
        if path.is_file() and not path.is_symlink():
            os.utime(path, ns=(stamp, stamp))
    if gated.shell == ("dash",):  # Python computes the same whichever shell asks
        verdicts(gated, None, "OUTSIDE")
    gated.install(HOOKS, python="/nowhere/python")
    verdicts(gated, "run `shapeupd install` again", "run `shapeupd install` again")


def test_a_policy_that_cannot_be_computed_refuses_with_a_remedy_and_soon(gated: Gated, tmp_path: Path) -> None:
    """The interpreter's own packages hang: what computes the policy is given up."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    for package in ("hooks", "parsers"):
        shutil.copytree(PROJECT / package, packages / package)
    (packages / "daemon").mkdir()
    (packages / "daemon/__init__.py").touch()
    (packages / "daemon/__main__.py").write_text("import threading\nthreading.Event().wait()\n")
    for name in ("policy.json", "policy.paths"):
        (gated.root / ".shapeup" / name).unlink()
    gated.install(HOOKS, python=str(home / "bin/python"), main=str(packages / "hooks/__main__.py"))
    said = gated.commit("src/cart/x")
    assert said is not None
    assert "computing one failed within 1.6 s" in said
    assert "fix: run `shapeupd run --once`" in said
    (packages / "daemon/__main__.py").write_text("raise SystemExit(3)\n")
    said = gated.commit("src/cart/x")
    assert said is not None
    assert "(it ended with 3)" in said
    assert "Traceback" not in said


def test_every_order_is_broken(gated: Gated) -> None:
    """An invalid order grants nothing, and an order file that nobody can read narrows nothing that a good one allows."""
    for name in ("policy.json", "policy.paths"):
        (gated.root / ".shapeup" / name).unlink()
    gated.write(".shapeup/cart/orders/bad-r1-a1.json", "{torn")
    verdicts(gated, None, "OUTSIDE")


def test_the_local_tree_is_a_file(gated: Gated) -> None:
    shutil.rmtree(gated.root / ".shapeup")
    (gated.root / ".shapeup").write_text("?")
    assert gated.commit("src/cart/x") is None


def test_the_local_tree_is_a_link_to_nowhere(gated: Gated) -> None:
    shutil.rmtree(gated.root / ".shapeup")
    (gated.root / ".shapeup").symlink_to("nowhere")
    assert "Traceback" not in (gated.commit("src/cart/x") or "")


@pytest.fixture
def as_nobody(gated: Gated) -> Iterator[Callable[[str], subprocess.CompletedProcess[str]]]:
    """Commits as a user whom permissions hold."""
    if os.geteuid() == 0 and not os.access(sys.executable, os.X_OK):
        pytest.skip("root cannot give its rights away here")
    place = Path(tempfile.mkdtemp(prefix="nobody-", dir="/tmp"))
    repo = place / "repo"
    shutil.copytree(gated.root, repo, symlinks=True)
    nobody = 65534
    if os.geteuid() == 0:
        for folder, names, files in os.walk(place):
            for name in (".", *names, *files):
                os.chown(os.path.join(folder, name), nobody, nobody, follow_symlinks=False)
    place.chmod(0o755)

    def commit(path: str) -> subprocess.CompletedProcess[str]:
        who = {"user": nobody, "group": nobody, "extra_groups": []} if os.geteuid() == 0 else {}
        script = f"umask 022; mkdir -p $(dirname {path}) && echo x >{path} && git add {path} && git commit -qm x"
        return subprocess.run(
            ["sh", "-c", script],
            cwd=repo,
            env=ENV | {"HOME": str(place)},
            capture_output=True,
            text=True,
            check=False,
            **who,
        )

    commit.repo = repo  # type: ignore[attr-defined]
    yield commit
    subprocess.run(["chmod", "-R", "u+rwx", str(place)], check=True)
    shutil.rmtree(place)


@pytest.mark.parametrize("folder", [".shapeup", ".shapeup/cart", ".shapeup/cart/orders"])
def test_a_local_tree_that_cannot_be_read_refuses(
    as_nobody: Callable[[str], subprocess.CompletedProcess[str]], folder: str
) -> None:
    repo: Path = as_nobody.repo  # type: ignore[attr-defined]
    assert as_nobody("src/cart/x").returncode == 0
    (repo / folder).chmod(0)
    done = as_nobody("src/cart/y")
    (repo / folder).chmod(0o755)
    assert done.returncode != 0
    assert "shapeupd: this" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_foreign_git_that_fails_is_told_in_words(gated: Gated) -> None:
    said = gated.commit("docs/x", GIT_TRACE="0")
    assert said is not None
    gated.git("reset", "-q", "--hard")
    shutil.copy(gated.root / ".git/index", gated.root / ".git/index.kept")
    gated.stage("src/cart/x")
    hook = gated.root / ".git/hooks/pre-commit"
    (gated.root / ".git/broken-index").write_bytes(b"DIRC nonsense")
    done = subprocess.run(
        [str(hook)],
        cwd=gated.root,
        env=ENV | {"GIT_INDEX_FILE": ".git/broken-index"},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 1
    assert "it cannot be judged" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_policy_command_prints_what_the_hooks_read(gated: Gated) -> None:
    done = subprocess.run(
        [*COMMAND, "--repo", str(gated.root), "check", "--print-policy"], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["schema"] == 1
    assert Contract(**found["contracts"][0]).order_id == "cart/core-r1-a1"
