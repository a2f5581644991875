"""A clean feature in a dict tree, to be spoilt one place at a time."""

from __future__ import annotations

from parsers.tree import DictTree
from reducers.lint_spec.facts import SpecFacts, read_spec_facts
from reducers.lint_spec.findings import Finding
from reducers.lint_spec.lint import lint_spec

SPEC = "shapeup/cart"
BOARD = ".shapeup/cart"


def contract(scope_id: str, use_case: str, *more: str, allowed: str = "", topology: str = "ICEBERG") -> str:
    """A contract; a line in `more` takes the place of the line of the same key."""
    lines = {
        "scope_id": f"scope_id: {scope_id}",
        "topology_type": f"topology_type: {topology}",
        "use_cases": f"use_cases: [{use_case}]",
        "covers": "covers: [REQ-1]",
        "allowed_file_substrate": f"allowed_file_substrate: [{allowed or f'src/{scope_id}/a.py, tests/{scope_id}.py'}]",
        "e2e_verification_fixtures": 'e2e_verification_fixtures: ["make check"]',
        "hill_phase": "hill_phase: UPHILL_UNKNOWN",
    }
    lines |= {line.partition(":")[0]: line for line in more}
    return "---\n" + "\n".join(lines.values()) + f"\n---\n\n# {scope_id}\n"


def task(task_id: str, use_case: str, *more: str) -> str:
    lines = {
        "id": f"id: {task_id}",
        "status": "status: ready",
        "depends_on": "depends_on: []",
        "unlocks": "unlocks: []",
        "use_case_refs": f"use_case_refs: [{use_case}]",
    }
    lines |= {line.partition(":")[0]: line for line in more}
    return "---\n" + "\n".join(lines.values()) + f"\n---\n\n# {task_id}\n\n- [ ] adds (covers: REQ-1)\n"


def feature() -> dict[str, str | None]:
    """The files of the feature by path."""
    return {
        f"{SPEC}/spec/domain-model.md": "# Domain\n",
        f"{SPEC}/spec/usecases/UC-Add.md": "# Add\n\n## Steps\n\n1. add\n\n- [INV-1] never negative\n",
        f"{SPEC}/spec/usecases/UC-Rm.md": "# Remove\n\n## Steps\n\n1. remove\n",
        f"{SPEC}/scopes/add.md": contract("add", "UC-Add"),
        f"{SPEC}/scopes/rm.md": contract("rm", "UC-Rm", "depends_on: [add]"),
        f"{SPEC}/requirements.md": "| REQ-id | Clause | Source | Status |\n|---|---|---|---|\n| REQ-1 | adds | pitch | covered |\n",
        f"{BOARD}/tasks/TASK-1.md": task("TASK-1", "UC-Add", "unlocks: [TASK-2]"),
        f"{BOARD}/tasks/TASK-2.md": task("TASK-2", "UC-Rm", "depends_on: [TASK-1]"),
        f"{BOARD}/intake.md": "# Cart\n\n## No-gos\n\n- no network\n",
        "src/add/a.py": "",
        "src/rm/a.py": "",
    }


def tree_of(files: dict[str, str | None]) -> DictTree:
    return DictTree({path: text.encode() for path, text in files.items() if text is not None})


def facts_of(changes: dict[str, str | None]) -> SpecFacts:
    """The facts of the clean feature with these files in place of its own; None: the file is gone."""
    tree = tree_of({**feature(), **changes})
    return read_spec_facts(tree, "cart", [path for path in tree.files if not path.startswith(".shapeup/")])


def findings(changes: dict[str, str | None]) -> list[Finding]:
    return list(lint_spec(facts_of(changes)).findings)


def told(changes: dict[str, str | None]) -> list[tuple[str, str, str | None]]:
    return [(one.rule, one.level, one.scope) for one in findings(changes)]
