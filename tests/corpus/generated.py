"""Makes small cases by chance, in every manner that a planner or a worker may write: newlines, lists, ids, boxes, tables."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from tests.corpus.replay_cases import Case, Step

RUN = ".shapeup/cart/"
IDS = ("TASK-1", "TASK-2", "TASK-10", "TASK-11", "TASK-001", "TASK-1.5", "T-1", "TASK-2-x")
TEXTS = (
    "works",
    "does it",
    "does it well",
    "does IT",
    "sells rolls",
    "sells rolls (covers: REQ-1)",
    "a",
    "`code` here",
    "x | y",
)
SAID = (*TEXTS, "", "works now", "WORKS", "and goes on", "does it and goes on", "in", "Ünïcode  two")
HEADINGS = ("n", "n\n## Execution Log — 2026-01-01 (x/y)", "\n# x", "l1\nl2")
HEADERS = (
    "| ID | Title | Status | Depends On |",
    "| ID | Title | Package | Status | Priority | Depends On | Est. |",
    "| Title | Status | ID |",
    "| # | Task | Status |",
)
CELLS = (
    "⬜ ready",
    "🔄 in-progress",
    "🚫 blocked",
    "✅ done",
    "⬜",
    "🚫",
    "⏳ blocked",
    "ready",
    "Blocked",
    "✅ Done",
    " ",
    "🔄",
)


def make_case(seed: int) -> Case:
    """The case of a seed: a run's tasks and index, up to four results, some of them dropped twice."""
    chance = Random(seed)
    ids = chance.sample(IDS, chance.randint(0, 5))
    files = {
        f"{RUN}tasks/{chance.choice([name, f'{name}-core', f'{name}_x', f'{name}.y'])}.md": _task(
            chance, name if chance.random() < 0.93 else chance.choice(IDS)
        )
        for name in ids
    }
    if ids and chance.random() < 0.75:
        files[f"{RUN}tasks/_index.md"] = _index(chance, ids)
    if chance.random() < 0.1:
        files[f"{RUN}evaluation/.verdicts-s1-r1-a1.jsonl"] = chance.choice(
            ['{"run":3}\n', '{"run":2}\n{"x', '{"run":"7"}\n']
        )
    if chance.random() < 0.1:
        files[f"{RUN}discovery/ledger.md"] = "# mine\n"
    results: dict[str, bytes] = {}
    paths: list[str] = []
    for number in range(chance.randint(1, 4)):
        stem = f"s{number}-r1-a1"
        wrong = chance.choice(["cart/other", f"other/{stem}", "../x"])
        again = bool(paths) and chance.random() < 0.15
        paths.append(chance.choice(paths) if again else f"{RUN}results/{stem}.json")
        if not again:
            results[paths[-1]] = _result(chance, wrong if chance.random() < 0.04 else f"cart/{stem}")
    steps = tuple(Step(at + 1, path, True, "", {}) for at, path in enumerate(paths))
    return Case(
        f"generated-{seed}", Path(), {path: text.encode() for path, text in files.items()}, results, steps, (), {}
    )


def _task(chance: Random, name: str) -> str:
    needs = chance.sample(IDS, chance.choice([0, 0, 1, 1, 2]))
    depends_on = chance.choice(
        [
            f"depends_on: [{', '.join(needs)}]",
            "depends_on: [" + ", ".join(f'"{need}"' for need in needs) + "]",
            "depends_on:" + "".join(f"\n  - {need}" for need in needs),
            "depends_on:" + "".join(f"\n- {need}" for need in needs),
        ]
    )
    status = chance.choice(["ready", "ready", "blocked", "blocked", "in-progress", "done", "cut", '"ready"', "weird"])
    keys = [f"id: {name}" if chance.random() < 0.9 else f'id: "{name}"', f"status: {status}", depends_on]
    keys.append(f'title: "A {chance.choice(["ready", "blocked", "plain", "x | y"])} one"')
    if chance.random() < 0.2:
        keys.append(chance.choice(["note: costs $& or $$", "note: $' x", "completed_at: 2026-01-01", "tags: [a, b]"]))
    chance.shuffle(keys)
    front = "---\n" + "\n".join(["type: task", *keys]) + "\n---\n" if chance.random() < 0.93 else "\n".join(keys) + "\n"
    boxes = [_box(chance) for _ in range(chance.randint(0, 5))]
    text = front + f"\n# {name}\n\n" + "\n".join(boxes) + chance.choice(["\n", "", "\n\n"])
    if chance.random() < 0.15:
        text += "\n## Execution Log — 2026-01-02 (cart/zzz)\n- status: done\n- [ ] works\n"
    text = text.replace("\n", "\r\n") if chance.random() < 0.12 else text
    return "\ufeff" + text if chance.random() < 0.07 else text


def _box(chance: Random) -> str:
    indent = chance.choice(["", "", "  "])
    text = f"{indent}- [{chance.choice(' xX  ')}] {chance.choice(TEXTS)}"
    text += f"\n{indent}      and goes on" if chance.random() < 0.2 else ""
    text += f"\n{indent}  - sub" if chance.random() < 0.1 else ""
    return f"```\n{text}\n```" if chance.random() < 0.12 else text


def _index(chance: Random, ids: list[str]) -> str:
    header = chance.choice(HEADERS)
    columns = [cell.strip() for cell in header.strip("|").split("|")]
    rows = []
    for name in (*ids, chance.choice(IDS)):
        shown = chance.choice([name, name, f"[[{name}\\|{name}]]", f"[[{name}]]", f"`{name}`", f"**{name}**"])
        cells = {"ID": shown, "#": shown, "Title": chance.choice(["plain", "a ready blocked thing", "see TASK-1"])}
        cells |= {"Status": chance.choice(CELLS), "Depends On": chance.choice(["—", *IDS])}
        rows.append("| " + " | ".join(cells.get(column, "1") for column in columns) + " |")
    tail = chance.choice(["", "\nTASK-1 is ready | x\n", "\n⬜ 0 / 3 tasks complete\n", "\nno pipe TASK-2 ready\n"])
    text = "\n".join(["# Board", "", header, "|" + "---|" * len(columns), *rows, ""]) + tail
    return text.replace("\n", "\r\n") if chance.random() < 0.12 else text


def _result(chance: Random, order_id: str) -> bytes:
    result: dict[str, Any] = {"schema_version": 1, "order_id": order_id, "status": "done"}
    if chance.random() < 0.7:
        result["worker"] = "task-executor"
    result["task_results"] = [_entry(chance) for _ in range(chance.choice([0, 1, 1, 1, 2, 3]))]
    if chance.random() < 0.25:
        line = chance.choice(["x", "y\n# z"])
        result["discoveries"] = [
            {"marker": "+", "line": line, "lens": chance.choice(["", "qa"]), "traces_to": ["REQ-1"]}
        ]
    if chance.random() < 0.2:
        refuted = [{"task_id": chance.choice(IDS), "ac": chance.choice(TEXTS)} for _ in range(chance.randint(0, 2))]
        criteria = [{"criterion": "c", "verdict": "PASS"}][: chance.randint(0, 1)]
        result["verdict"] = {"overall": "FAIL", "criteria": criteria, "refuted": refuted}
    return json.dumps(result, ensure_ascii=False, indent=chance.choice([None, 1])).encode()


def _entry(chance: Random) -> dict[str, Any]:
    acs = []
    for _ in range(chance.randint(0, 4)):
        ac = {"ac": chance.choice(SAID), "result": chance.choice(["pass", "pass", "pass", "fail", "skipped"])}
        acs.append(ac | ({"evidence": chance.choice(["e", "# h", *HEADINGS])} if chance.random() < 0.3 else {}))
    status = chance.choice(["done", "done", "done", "partial", "failed", "skipped"])
    entry: dict[str, Any] = {"task_id": chance.choice([*IDS, "TASK-9", "TASK"]), "status": status, "ac_results": acs}
    return entry | ({"notes": chance.choice(HEADINGS)} if chance.random() < 0.2 else {})
