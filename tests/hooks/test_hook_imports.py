"""What the slow path loads: a refusal must not wait for libraries it does not need. Source: targets 19, design §4."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hooks.gated import CART, ENV, PROJECT, Gated

# Seen in a fresh interpreter, after the hook has refused. Each of them costs milliseconds.
BANNED = frozenset(
    "pydantic pygit2 watchdog rich ruamel tomllib subprocess argparse pathlib logging tempfile shutil socket asyncio dataclasses "
    "inspect hashlib threading traceback difflib ast email urllib daemon reducers".split()
)

PROBE = """
import sys, json
sys.argv = {argv!r}
sys.path.append({project!r})
import importlib.util
spec = importlib.util.spec_from_file_location("gate_main", {main!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
status = module.main(sys.argv[1:])
print(json.dumps([status, sorted(sys.modules)]))
"""


def loaded_by(gated: Gated, *argv: str, stdin: str = "") -> tuple[int, set[str]]:
    """The hook's exit status and the modules that its process has loaded at the end."""
    main = str(PROJECT / "hooks" / "__main__.py")
    code = PROBE.format(argv=[main, *argv], project=str(PROJECT), main=main)
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, cwd=gated.root, env=ENV, capture_output=True, text=True, check=True, input=stdin)
    status, names = json.loads(done.stdout)
    return status, set(names)


@pytest.fixture
def gated(tmp_path: Path) -> Gated:
    gated = Gated(tmp_path / "repo", hooks=())
    gated.orders(CART)
    return gated


def test_a_refusal_loads_nothing_heavy(gated: Gated) -> None:
    gated.stage("docs/x")
    status, names = loaded_by(gated, "pre-commit", "--root", str(gated.root))
    assert status == 1
    assert "hooks.policy" in names
    assert not {name for name in names if name.split(".")[0] in BANNED}
    assert "hooks.specs" not in names, "the rules over specs are loaded for a spec alone"
    assert "hooks.range.judge" not in names


def test_letting_pass_loads_nothing_heavy(gated: Gated) -> None:
    gated.stage("src/cart/ä")
    status, names = loaded_by(gated, "pre-commit", "--root", str(gated.root))
    assert status == 0
    assert not {name for name in names if name.split(".")[0] in BANNED}


def test_a_replay_loads_next_to_nothing(gated: Gated) -> None:
    gated.stage("docs/x")
    (gated.root / ".git/rebase-merge").mkdir()
    status, names = loaded_by(gated, "pre-commit", "--root", str(gated.root))
    assert status == 0
    assert not {name for name in names if name.split(".")[0] in BANNED}


def test_the_entry_file_itself_imports_nothing_of_ours_at_the_top() -> None:
    source = (PROJECT / "hooks" / "__main__.py").read_text().splitlines()
    tops = [line for line in source if line.startswith(("import ", "from "))]
    assert tops == ["from __future__ import annotations", "import sys"]
