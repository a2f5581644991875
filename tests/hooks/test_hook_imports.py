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

NOT_LIGHT = frozenset({"__main__", "__init__", "light_typing"})

PROBE = """
import sys, json
sys.argv = {argv!r}
sys.path.append({project!r})
from hooks.light_typing import stand_in
stand_in()
import importlib.util
spec = importlib.util.spec_from_file_location("gate_main", {main!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
status = module.main(sys.argv[1:])
names = sorted(sys.modules)
print(json.dumps([status, names, sys.modules["typing"].__name__]))
"""


def loaded_by(gated: Gated, *argv: str, stdin: str = "") -> tuple[int, set[str]]:
    """The hook's exit status and the modules that its process has loaded at the end."""
    main = str(PROJECT / "hooks" / "__main__.py")
    code = PROBE.format(argv=[main, *argv], project=str(PROJECT), main=main)
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, cwd=gated.root, env=ENV, capture_output=True, text=True, check=True, input=stdin)
    status, names, typing = json.loads(done.stdout)
    assert typing == "hooks.light_typing", "typing costs as much as the rest of a refusal"
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


LIGHT = """
import sys, json, importlib
sys.path.append({project!r})
if {is_light}:
    from hooks.light_typing import stand_in
    stand_in()
told = []
for name in {names!r}:
    module = importlib.import_module(name)
    for key, value in sorted(vars(module).items()):
        if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields") and value.__module__ == name:
            fields = value._fields
            row = value(*range(len(fields)))
            again = value(**dict(zip(fields, range(len(fields)))))
            few = len(fields) - len(value._field_defaults)
            told.append([
                name, key, fields, list(value._field_defaults), row == again == tuple(range(len(fields))), tuple.__repr__(row),
                repr(row), row._asdict(),
                list(row._replace(**{{fields[0]: "x"}})) if fields else [], getattr(row, fields[-1]) if fields else None,
                [str(item) for item in value(*range(few))], sorted(value.__match_args__), hash(row) == hash(tuple(row)),
            ])
            for bad in (lambda: value(*range(len(fields) + 1)), lambda: value(*range(few), nonsense=1), lambda: value(*range(few - 1)) if few else value(1, nonsense=1)):
                try:
                    bad()
                except TypeError:
                    continue
                told.append([name, key, "takes what it should not"])
print(json.dumps(told))
"""


def test_the_light_stand_in_makes_the_same_tuples_as_typing() -> None:
    names = [f"hooks.{path.stem}" for path in sorted((PROJECT / "hooks").glob("*.py")) if path.stem not in NOT_LIGHT]
    names += [
        "parsers.policy_file",
        "parsers.trailers",
        "parsers.globs",
        "parsers.layout",
        "parsers.addresses",
        "parsers.contracts",
    ]
    told = []
    for is_light in (False, True):
        code = LIGHT.format(project=str(PROJECT), is_light=is_light, names=names)
        done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
        told.append(json.loads(done.stdout))
    assert told[0] == told[1]
    assert len(told[0]) > 10
    assert not [row for row in told[0] if len(row) == 3]


def test_a_name_that_the_stand_in_lacks_brings_the_real_module_back() -> None:
    code = f"""
import sys
sys.path.append({str(PROJECT)!r})
from hooks.light_typing import stand_in
stand_in()
from typing import NamedTuple, get_type_hints
import typing
print(typing.__file__ != sys.modules["hooks.light_typing"].__file__, get_type_hints.__module__)
import tomllib, difflib, traceback
from typing import Generic, TypeVar, Union
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "typing"]
