"""The two ingests as one function: what a sequence of results does to a tree under a set of fixes. Source: protocol §4, rulings C, D, L.

`fixes` empty: the reference, which must give the recorded trees. All of FIXES: what shapeupd must give. Between the two, one
fix after another, each difference gets its name.
"""

from __future__ import annotations

import hashlib
import json
import math
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.corpus.oracle_text import (
    GLYPH,
    Fixes,
    TaskFile,
    add_block,
    flip_rows,
    inert,
    read_task,
    set_boxes,
    set_key,
    table_rows,
)

# In the order in which they are put on, one after another: refusals, then single edits, then the index as a whole.
FIXES = (
    "T-26",
    "W-01",
    "R-03",
    "C11",
    "L2",
    "W-06",
    "C2",
    "W-21",
    "C5",
    "R-17",
    "R-34",
    "W-17",
    "W-22",
    "W-23",
    "W-76",
    "W-28",
    "L7",
    "12.4",
    "C8",
    "W-18",
    "W-19",
    "W-24",
    "W-20",
)
ALL: Fixes = frozenset(FIXES)

_EXTRA = {
    "task_results": {"task-executor"},
    "discoveries": {"task-executor", "ba-pitch-analyzer", "qa-edge-hunter", "orient"},
}
_EXTRA["verdict"] = {"spec-evaluator"}


class Drop(NamedTuple):
    """One result that lands: where, its bytes, and the leg row that the reference left for it, where it left one."""

    path: str
    data: bytes
    leg: bytes


class World(NamedTuple):
    """What the oracle is told beside the files: whether attestation is required, and the orders that were not admitted."""

    is_checked: bool = False
    refused_orders: frozenset[str] = frozenset()


class Answer(NamedTuple):
    """How one drop ends: the rule and codes of a refusal that the reference does not know; none where it is applied."""

    rule: str = ""
    codes: frozenset[str] = frozenset()


class Oracle:
    """A tree under ingest. `files` holds it as it stands, results left out."""

    def __init__(self, before: Mapping[str, bytes], fixes: Fixes, world: World) -> None:
        self.files = dict(before)
        self._fixes = fixes
        self._world = world
        self._applied: set[tuple[str, str]] = set()
        self._recorded: set[str] = set()
        self._derive_indexes()

    def drop(self, drop: Drop, *, accepted: bool) -> Answer:
        """Let a result land; `accepted` is what the reference said of its shape, its order and its attestation."""
        folder = drop.path.split("/")[1]
        answer = Answer()
        if accepted:
            answer = self._refusal(drop, folder) or Answer()
            if not answer.rule:
                self._ingest(drop, folder)
        if answer.rule not in ("C2", "W-01"):
            self._recorded.add(folder)
        self._derive_indexes()
        return answer

    # --- refusals -----------------------------------------------------------------------------------------------------

    def _refusal(self, drop: Drop, folder: str) -> Answer | None:
        fixes = self._fixes
        stem = posixpath.basename(drop.path).removesuffix(".json")
        hostile = hostile_codes(drop.data) if "T-26" in fixes else frozenset()
        if hostile:
            return Answer("T-26", hostile)
        result = json.loads(drop.data)
        if result.get("synthetic") is True and "W-01" in fixes:
            return Answer("W-01")
        order_id = result["order_id"]
        if "C11" in fixes and not re.fullmatch(r"[a-z0-9][a-z0-9-]*/[a-z0-9][A-Za-z0-9.-]*", order_id):
            return Answer("C11", frozenset({"E-ID"}))
        if "C11" in fixes and order_id.split("/")[0] != folder:
            return Answer("C11", frozenset({"E-SLUG"}))
        if "L2" in fixes and order_id.split("/")[1] != stem:
            return Answer("L2", frozenset({"E-STEM"}))
        if "W-17" in fixes and self._identity(drop, order_id) in self._applied:
            return None
        order = self._order(folder, stem)
        if order is None:
            if "C2" in fixes and self._world.is_checked and f".shapeup/{folder}/receipt.json" in self.files:
                return Answer("C2", frozenset({"E-NO-ORDER"}))
        elif "W-06" in fixes and (codes := _wrong_worker(result, order)):
            return Answer("W-06", codes)
        if "C5" in fixes and self._changes_nothing(result, folder):
            return Answer("C5", frozenset({"E-NO-TASK", "E-TASK-AMBIGUOUS"}))  # none, or two that answer to one id
        if "R-17" in fixes and _contradicts_itself(result.get("verdict") or {}):
            return Answer("R-17", frozenset({"R-17"}))
        if "R-34" in fixes and (order or result).get("worker") == "qa-edge-hunter" and not _is_hunt(result):
            return Answer("R-34", frozenset({"R-34"}))
        return None

    def _order(self, folder: str, stem: str) -> dict[str, Any] | None:
        path = f".shapeup/{folder}/orders/{stem}.json"
        if path in self._world.refused_orders:
            return None
        try:
            order = json.loads(self.files.get(path, b""))
        except ValueError:
            return None
        return order if isinstance(order, dict) else None

    def _changes_nothing(self, result: dict[str, Any], slug: str) -> bool:
        rows = result.get("task_results") or ()
        verdict = result.get("verdict") or {}
        named = [row["task_id"] for row in (*rows, *(verdict.get("refuted") or ()))]
        if any(self._find(slug, task_id) for task_id in named):
            return False
        return bool(rows) and not result.get("discoveries") and not verdict.get("criteria")

    @staticmethod
    def _identity(drop: Drop, order_id: str) -> tuple[str, str]:
        return order_id, hashlib.sha256(drop.data).hexdigest()

    # --- the work -----------------------------------------------------------------------------------------------------

    def _ingest(self, drop: Drop, folder: str) -> None:
        result = json.loads(drop.data)
        order_id = result["order_id"]
        identity = self._identity(drop, order_id)
        if "W-17" in self._fixes and identity in self._applied:
            return
        self._applied.add(identity)
        slug = order_id.split("/")[0]
        for row in result.get("task_results") or ():
            self._book(slug, row, result)
        self._unblock(slug)
        self._discover(slug, order_id, result.get("discoveries") or ())
        self._judge(slug, order_id, result.get("verdict") or {})
        if drop.leg and not ("R-03" in self._fixes and self._is_refused(folder, drop.path)):
            self._append(f".shapeup/{folder}/legs.jsonl", drop.leg.decode())

    def _is_refused(self, folder: str, path: str) -> bool:
        return f".shapeup/{folder}/orders/{posixpath.basename(path)}" in self._world.refused_orders

    def _text(self, path: str) -> str:
        return self.files[path].decode("utf-8", "surrogateescape")

    def _put(self, path: str, text: str) -> None:
        self.files[path] = text.encode("utf-8", "surrogateescape")

    def _append(self, path: str, text: str) -> None:
        old = self._text(path) if path in self.files else ""
        if "12.4" in self._fixes and path.endswith(".jsonl") and old and not old.endswith("\n"):
            old += "\n"
        self._put(path, old + text)

    def _names(self, slug: str) -> list[str]:
        folder = _in_run(slug, "tasks")
        return sorted(path for path in self.files if posixpath.dirname(path) == folder and path.endswith(".md"))

    def tasks(self, slug: str) -> dict[str, TaskFile]:
        """Every task file of a run by path."""
        return {
            path: read_task(posixpath.basename(path), self._text(path), self._fixes)
            for path in self._names(slug)
            if posixpath.basename(path).startswith("TASK-")
        }

    def _find(self, slug: str, task_id: str) -> str | None:
        if "W-21" not in self._fixes:
            return next((p for p in self._names(slug) if posixpath.basename(p).startswith(task_id)), None)
        tasks = self.tasks(slug)
        found = [path for path, task in tasks.items() if task.id == task_id]
        if not found and task_id:
            stems = {path: posixpath.basename(path).removesuffix(".md") for path in tasks}
            found = [
                p for p, stem in stems.items() if stem == task_id or stem.startswith((f"{task_id}-", f"{task_id}."))
            ]
        return found[0] if len(found) == 1 else None

    def _book(self, slug: str, row: dict[str, Any], result: dict[str, Any]) -> None:
        path = self._find(slug, row["task_id"])
        if path is None:
            return
        fixes, acs = self._fixes, row.get("ac_results") or ()
        text, _ = set_boxes(
            self._text(path), [ac["ac"] for ac in acs], [ac["result"] == "pass" for ac in acs], on=True, fixes=fixes
        )
        status = {"done": "done", "partial": "in-progress", "failed": "in-progress"}.get(row["status"])
        if status:
            text = set_key(text, "status", status, fixes)
        if status == "done":
            text = set_key(text, "completed_at", "<DATE>", fixes)
        lines = [f"- {ac['ac']}: {ac['result']}" + (f" ({ac['evidence']})" if ac.get("evidence") else "") for ac in acs]
        notes = f"\n- notes: {row['notes']}" if row.get("notes") else ""
        executor = result.get("worker") or "task-executor"
        body = f"- executor: {executor} via ingest-result\n- status: {row['status']}\n" + "\n".join(lines) + notes
        head = f"\n\n## Execution Log — <DATE> ({result['order_id']})\n"
        self._put(path, add_block(text, head + inert(body, fixes) + "\n", fixes))
        if status == "done":
            self._flip(slug, row["task_id"], path, "done")

    def _unblock(self, slug: str) -> None:
        tasks = self.tasks(slug)
        known = [task for task in tasks.values() if task.has_frontmatter or "C11" not in self._fixes]
        done = {task.id for task in known if task.status == "done"}
        for path, task in tasks.items():
            if task.status == "blocked" and task.depends_on and done >= set(task.depends_on) and task in known:
                self._put(path, set_key(self._text(path), "status", "ready", self._fixes))
                self._flip(slug, task.id, path, "ready")

    def _discover(self, slug: str, order_id: str, found: Sequence[dict[str, Any]]) -> None:
        if not found:
            return
        lines = []
        for item in found:
            lens = f"[lens:{item['lens']}] " if item.get("lens") else ""
            lines.append(f"{item['marker']} {lens}{item['line']}")
            labels = {
                "repro": "repro",
                "severity_hint": "severity-hint",
                "test_gap": "test-gap",
                "contradicts": "contradicts",
            }
            lines += [f"    {label}: {item[key]}" for key, label in labels.items() if item.get(key)]
            if item.get("traces_to"):
                lines.append(f"    traces_to: {', '.join(item['traces_to'])}")
        path = _in_run(slug, "discovery/ledger.md")
        if path not in self.files:
            self._put(path, f"---\nfeature: {slug}\n---\n# Discovery Ledger — {slug}\n")
        text = inert("\n".join(lines), self._fixes)
        self._append(path, f"\n## Discovered — {order_id} (<DATE>)\n{text}\n")

    def _judge(self, slug: str, order_id: str, verdict: dict[str, Any]) -> None:
        criteria = verdict.get("criteria") or ()
        if criteria:
            stem = ([*order_id.split("/"), "run"])[1] or "run"
            path = _in_run(slug, f"evaluation/.verdicts-{stem}.jsonl")
            run = 1 + max([0, *map(self._number, self.files.get(path, b"").decode("utf-8", "replace").split("\n"))])
            for item in criteria:
                row = {"run": run, "dimension": item.get("dimension") or "spec-conformance"}
                row |= {key: item[key] for key in ("criterion", "verdict", "confidence") if item.get(key) is not None}
                row |= {"reprobed": bool(item.get("reprobed")), "evidence": item.get("evidence") or "", "at": "<NOW>"}
                self._append(path, json.dumps(row, ensure_ascii=False) + "\n")
        for item in verdict.get("refuted") or ():
            if path := self._find(slug, item["task_id"]):
                text, _ = set_boxes(self._text(path), [item["ac"]], [True], on=False, fixes=self._fixes)
                text = set_key(text, "eval_verdict", "fail", self._fixes)
                self._put(path, set_key(text, "eval_at", "<DATE>", self._fixes))

    def _number(self, line: str) -> int:
        try:
            run = json.loads(line)["run"]
        except (ValueError, KeyError, TypeError):
            return 0
        if isinstance(run, int) and not isinstance(run, bool):
            return run
        try:
            value = float(run) if "C11" not in self._fixes else 0
        except (TypeError, ValueError):
            return 0
        return int(value) if math.isfinite(value) else 0

    # --- the index ----------------------------------------------------------------------------------------------------

    def _flip(self, slug: str, task_id: str, path: str, to: str) -> None:
        index = _in_run(slug, "tasks/_index.md")
        if index in self.files and "W-20" not in self._fixes:
            task = read_task(posixpath.basename(path), self._text(path), self._fixes)
            names = frozenset({task.id, posixpath.basename(path).removesuffix(".md")})
            self._put(index, flip_rows(self._text(index), task_id, names, to, self._fixes))

    def _derive_indexes(self) -> None:
        """W-20: every Status cell follows its file. C8: a run that has none gets an index; here only that it is there."""
        for slug in {path.split("/")[1] for path in self.files if path.startswith(".shapeup/")}:
            tasks = self.tasks(slug)
            index = f".shapeup/{slug}/tasks/_index.md"
            if not tasks:
                continue
            if index not in self.files and "C8" in self._fixes and slug in self._recorded:
                self.files[index] = b"created"
            elif index in self.files and "W-20" in self._fixes:
                self._put(index, _follow(self._text(index), tasks))


def _follow(index: str, tasks: Mapping[str, TaskFile]) -> str:
    lines = index.split("\n")
    rows = list(table_rows(index))
    for path, task in tasks.items():
        stem = posixpath.basename(path).removesuffix(".md")
        line, cell = next((row for name in (task.id, stem) for row in rows if row[1].key == name), (None, None))
        if line is None or cell is None or not task.status:
            continue
        text = lines[line][cell.start : cell.end]
        has_word = bool(re.search(r"[A-Za-z]", text))
        new = f" {GLYPH.get(task.status, '')} {task.status if has_word else ''}".rstrip() + " "
        lines[line] = lines[line][: cell.start] + new + lines[line][cell.end :]
    return "\n".join(lines)


def _in_run(slug: str, rest: str) -> str:
    """A path of the run as the slug's text leads to it: `..` leads out of the tree (C11 stops it)."""
    return posixpath.normpath(f".shapeup/{slug}/{rest}")


def _contradicts_itself(verdict: dict[str, Any]) -> bool:
    """PASS with something that fails, or FAIL with nothing that does."""
    fails = bool(verdict.get("bugs")) or any(row["verdict"] == "FAIL" for row in verdict.get("criteria") or ())
    return verdict.get("overall") == ("PASS" if fails else "FAIL")


def _is_hunt(result: dict[str, Any]) -> bool:
    return all(
        found["marker"] == "~" and (found.get("repro") or "").strip() for found in result.get("discoveries") or ()
    )


def _wrong_worker(result: dict[str, Any], order: dict[str, Any]) -> frozenset[str]:
    worker = order.get("worker")
    codes = {"E-FIELD-RIGHTS" for field, workers in _EXTRA.items() if result.get(field) and worker not in workers}
    if result.get("worker") is not None and result["worker"] != worker:
        codes.add("E-WORKER")
    return frozenset(codes)


def hostile_codes(data: bytes) -> frozenset[str]:
    """The codes of hostile JSON that the reference's parser lets pass. Source: targets 26."""
    codes: set[str] = set()
    if len(data) > 1024 * 1024:
        return frozenset({"E-TOO-LARGE"})

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in items}) < len(items):
            codes.add("E-DUPLICATE-KEY")
        return dict(items)

    def number(text: str) -> float:
        value = float(text)
        if not math.isfinite(value) or (text.lstrip("-").isdigit() and not -(2**63) <= int(text) < 2**63):
            codes.add("E-NUMBER")
        return value

    try:
        text = data.decode()
        value = json.loads(text, object_pairs_hook=pairs, parse_float=number, parse_int=number, parse_constant=number)
    except (ValueError, RecursionError):
        return frozenset({"E-ENCODING", "E-JSON", "E-DEPTH"})
    if _depth(value) > 64:
        codes.add("E-DEPTH")
    characters = set("".join(_strings(value)))
    if "\0" in characters:
        codes.add("E-NUL")
    if any("\ud800" <= character <= "\udfff" for character in characters):
        codes.add("E-SURROGATE")
    return frozenset(codes)


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, (dict, list)) else 0


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _strings(item)]
