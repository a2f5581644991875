"""Reads what an order is compiled from, straight from the disk; nothing is written. Source: protocol §2.5, §6.8, D-1, W-01, W-35, W-48."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from daemon.disk import DiskTree
from hooks.spec_rules.readable_contract import judge_readable
from parsers.addresses import SLUG, scope_stem
from parsers.contracts import contract_object, parse_contract
from parsers.domain import Verdict
from parsers.facts import ResultFact, read_result
from parsers.faults import Fault
from parsers.frontmatter import parse_frontmatter
from parsers.layout import LOCAL_ROOT, NOT_A_SLUG, SHARED_ROOT, folder_of, path_of, stem_at
from parsers.ledgers import parse_ingest_rows
from parsers.markdown import decode
from parsers.receipts import parse_receipt
from parsers.scope_contract import take_scope_contract
from parsers.strict_json import parse_strict
from parsers.t0_verdict import parse_t0_verdict
from parsers.tasks import parse_boxes
from parsers.tree import Unreadable
from parsers.trials import parse_trials
from reducers.bugs import ScopeArea
from reducers.compile.request import Artifact, CompileFacts, Contract
from reducers.identity import APPLIED
from reducers.task_index import TaskIndex

_LISTS = (
    "use_cases",
    "covers",
    "depends_on",
    "allowed_file_substrate",
    "shared_substrate",
    "e2e_verification_fixtures",
    "superseded_by",
)


def is_feature(tree: DiskTree, slug: str) -> bool:
    """Whether the feature has a folder in one of the two trees."""
    return SLUG.match(slug) is not None and slug not in NOT_A_SLUG and any(map(_is_folder, _folders(tree, slug)))


def _folders(tree: DiskTree, slug: str) -> Iterator[Path]:
    return (tree.root / root / slug for root in (LOCAL_ROOT, SHARED_ROOT))


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def read_compile_facts(tree: DiskTree, slug: str) -> CompileFacts:
    """The run as its files say. Raises Unreadable where the receipt is no plain file."""
    path = path_of("receipt", slug)
    data = tree.read(path)
    receipt = parse_receipt(data, path) if data is not None else None
    run_id = receipt.run_id if receipt else None
    config = _config(data or b"", path)
    lens, dimensions = _told_by_run(tree, slug, config)
    named = receipt.config.spec_folder if receipt else None
    tasks = tuple(TaskIndex.read(tree, slug))
    facts = CompileFacts(
        os.fspath(tree.root),
        slug,
        run_id,
        lens=lens,
        dimensions=dimensions,
        spec_dir=_spec_dir(tree, slug, named),
        tasks=tasks,
        criteria={task.path: parse_boxes(decode(_bytes(tree, task.path))) for task in tasks},
        contracts={scope_stem(stem_at(one.path)): one for one in _contracts(tree, slug)},
        trials=parse_trials(_bytes(tree, path_of("trials", slug)), run_id),
        artifacts=tuple(_artifacts(tree, slug, run_id)),
        ledgers=(_bytes(tree, path_of("round-ledger", slug)), _bytes(tree, f"{LOCAL_ROOT}/{slug}/round-ledger.md")),
        verdict_of=lambda round_: _verdict(tree, slug, round_),
        has_file=lambda path: _is_file(tree, path),
    )
    return facts._replace(config=receipt.config) if receipt else facts


def _config(data: bytes, path: str) -> dict[str, object]:
    value = parse_strict(data, path).value
    config = value.get("config") if isinstance(value, dict) else None
    return config if isinstance(config, dict) else {}


def _told_by_run(tree: DiskTree, slug: str, config: dict[str, object]) -> tuple[str | None, tuple[str, ...]]:
    """Lens and dimensions: harness-run.md's, which may have been changed since the run was opened; else the receipt's."""
    block, _ = parse_frontmatter(decode(_bytes(tree, path_of("harness-run", slug))), path_of("harness-run", slug))
    values = block.values if block else {}
    lens = values.get("lens") or config.get("lens")
    dimensions = values.get("eval_dimensions") or config.get("eval_dimensions")
    names = dimensions if isinstance(dimensions, list | tuple) else ()
    known = lens if isinstance(lens, str) and lens in ("lite", "standard", "cross-context") else None
    return known, tuple(name for name in names if isinstance(name, str))


def _spec_dir(tree: DiskTree, slug: str, named: str | None) -> str | None:
    """The feature's own spec folder where it exists, else the one that the run was opened with; None where neither says one."""
    default = folder_of("spec", slug)
    if _is_folder(tree.root / default):
        return default
    bare = (named or "").rstrip("/")
    return bare if bare and not bare.startswith("/") and ".." not in bare.split("/") else None


# --- contracts -------------------------------------------------------------------------------------------------------


def _contracts(tree: DiskTree, slug: str) -> Iterator[Contract]:
    folder = folder_of("scope-contract", slug)
    for name in tree.list(folder):
        if name.endswith(".md") and not name.startswith("."):
            yield _contract(tree, f"{folder}/{name}")


def _contract(tree: DiskTree, path: str) -> Contract:
    """The contract in the file; with faults where it does not read as a whole, for then nothing is built by it."""
    text = decode(_bytes(tree, path))
    parsed = parse_contract("scope-contract", text, path)
    named = parsed.keys.get("scope_id")
    scope_id = str(named) if named is not None else stem_at(path)
    document = {"scope_id": scope_id} | {
        key: list(parsed.texts(key)) if key in _LISTS and isinstance(value, str) else value
        for key, value in contract_object(parsed).items()
        if value is not None and key != "scope_id"
    }
    area = ScopeArea(
        scope_id,
        parsed.texts("allowed_file_substrate"),
        parsed.texts("shared_substrate"),
        parsed.texts("depends_on"),
        parsed.texts("use_cases"),
    )
    unread = (
        Fault(one.rule, path, one.what, one.why, one.fix) for one in judge_readable(os.fsencode(path), text, parsed)
    )
    _, wrong = take_scope_contract(parsed, path)
    successors, tasks = parsed.texts("superseded_by"), parsed.texts("tasks")
    return Contract(path, area, document, successors, tasks, (*unread, *wrong))


# --- evidence --------------------------------------------------------------------------------------------------------


def _artifacts(tree: DiskTree, slug: str, run_id: str | None) -> Iterator[Artifact]:
    folder = folder_of("t0-verdict", slug)
    for name in tree.list(folder):
        path = f"{folder}/{name}"
        verdict = parse_t0_verdict(_bytes(tree, path), path) if name.endswith(".json") else None
        if verdict and (run_id is None or verdict.run_id in (None, run_id)):
            yield Artifact(path, verdict.scope_id, verdict.address, verdict.is_green, verdict.discovered_tasks)


def _verdict(tree: DiskTree, slug: str, round_: int) -> Verdict | None:
    """What `evaluate-r<round>` says; None where it lies there refused, as a marker, or says nothing.

    A result that no record speaks of counts as it lies there: another reducer keeps none.
    """
    stem = f"evaluate-r{round_}"
    fact = _result(tree, slug, stem)
    rows = parse_ingest_rows(_bytes(tree, path_of("ingest-record", slug)))
    own = [row for row in rows if row.order_id == f"{slug}/{stem}"]
    is_taken = not own or any(row.outcome in APPLIED and fact and row.sha256 == fact.sha256 for row in own)
    return fact.result.verdict if fact and is_taken else None


def _result(tree: DiskTree, slug: str, stem: str) -> ResultFact | None:
    path = path_of("result", slug, stem)
    data = _bytes(tree, path)
    return read_result(path, data).fact if data else None


def _is_file(tree: DiskTree, path: str) -> bool:
    """Whether a plain file of the checkout has this path."""
    if path.startswith("/") or "\0" in path or ".." in path.split("/"):
        return False
    try:
        return stat.S_ISREG(os.lstat(tree.root / path).st_mode)
    except OSError:
        return False


def _bytes(tree: DiskTree, path: str) -> bytes:
    try:
        return tree.read(path) or b""
    except (Unreadable, OSError):
        return b""
