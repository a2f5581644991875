"""README's first run by hand does what README says. Source: README.md "A first run by hand"."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

from tests.e2e.living import shapeupd

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^( *)```(?:json|markdown)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


def blocks(heading: str, following: str) -> list[str]:
    """The examples of one section, in order; an example may hold a heading of its own."""
    section = README.split(f"\n## {heading}\n")[1].split(f"\n## {following}\n")[0]
    return [dedent(text) for _, text in FENCE.findall(section)]


def test_the_three_files_of_the_first_run_are_valid_and_tick_the_task(tmp_path: Path) -> None:
    (result,) = blocks("What it does", "A first run by hand")
    task, order, receipt, dispatch = blocks("A first run by hand", "Commands")
    local = tmp_path / ".shapeup/checkout"
    paths = [local / "tasks/TASK-003.md", local / "orders/cart-r1-a1.json", local / "results/cart-r1-a1.json"]
    for path, text in zip(paths, (task, order, result), strict=True):
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    validated = shapeupd("validate", *map(str, paths[1:]))
    assert (validated.returncode, validated.stderr) == (0, "")
    assert shapeupd("run", "--once", "--repo", str(tmp_path)).returncode == 0
    assert "status: done" in paths[0].read_text(encoding="utf-8")
    assert "- [x] Total is shown" in paths[0].read_text(encoding="utf-8")

    (local / "receipt.json").write_text(receipt)
    (local / "receipts/dispatch.jsonl").write_text(dispatch)
    second = local / "results/cart-r1-a2.json"
    second.write_text(result.replace("cart-r1-a1", "cart-r1-a2"))
    assert "E-NO-ORDER" in shapeupd("validate", str(second)).stderr
    (local / "orders/cart-r1-a2.json").write_text(order.replace("cart-r1-a1", "cart-r1-a2"))
    assert "E-UNATTESTED" in shapeupd("validate", str(second)).stderr
    (local / "receipts/dispatch.jsonl").write_text(dispatch + dispatch.replace("cart-r1-a1", "cart-r1-a2"))
    assert shapeupd("validate", str(second)).stderr == ""


def test_the_evaluation_that_readme_shows_is_valid(tmp_path: Path) -> None:
    (evaluation,) = blocks("The clock", "The ratchet and the hill")
    path = tmp_path / ".shapeup/checkout/results/evaluate-r1.json"
    path.parent.mkdir(parents=True)
    path.write_text(evaluation)
    assert shapeupd("validate", "--as", "result", str(path)).returncode == 0
