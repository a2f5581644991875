"""The one table of artifact kinds: where each lives, who writes it, who reads it. Source: protocol §1.2-1.4, cli §4.

No other module spells a path of the two trees. Light module: standard library only, hooks import it.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

LOCAL_ROOT = ".shapeup"
SHARED_ROOT = "shapeup"

# Folders directly below the two roots that are no feature.
NOT_A_SLUG = frozenset({"metrics", "exports", "archive", "pitch-archive", "knowledge-base"})


class Artifact(NamedTuple):
    """One kind of artifact. `template` holds `<slug>` and `<stem>` (one path segment) or `**` (any depth)."""

    kind: str
    template: str
    tier: str  # LOCAL (git ignores it) or SHARED (committed)
    format: str
    writer: str
    readers: tuple[str, ...]


class Place(NamedTuple):
    """Where a path stands in the table: its kind, slug (None outside a feature) and stem (None where there is none)."""

    kind: str
    slug: str | None
    stem: str | None


def _local(kind: str, template: str, format_: str, writer: str, *readers: str) -> Artifact:
    return Artifact(kind, f"{LOCAL_ROOT}/{template}", "LOCAL", format_, writer, readers)


def _shared(kind: str, template: str, format_: str, writer: str, *readers: str) -> Artifact:
    return Artifact(kind, f"{SHARED_ROOT}/{template}", "SHARED", format_, writer, readers)


KINDS: tuple[Artifact, ...] = (
    # one run: facts that agents and people write
    _local("order", "<slug>/orders/<stem>.json", "json", "compile", "worker", "hooks", "ingest", "resume"),
    _local("result", "<slug>/results/<stem>.json", "json", "the dispatched worker", "ingest", "resume", "compile"),
    _local("receipt", "<slug>/receipt.json", "json", "open", "everything that needs run_id or a budget"),
    _local("dispatch", "<slug>/receipts/dispatch.jsonl", "jsonl", "dispatch receipt hook", "ingest"),
    _local("graders", "<slug>/receipts/graders.jsonl", "jsonl", "shapeupd", "verify t0"),
    _local("intake", "<slug>/intake.md", "text", "open", "orient", "analyze", "lint"),
    _local("harness-run", "<slug>/harness-run.md", "frontmatter", "orchestrator", "resume", "snapshot", "ship"),
    _local("run-args", "<slug>/run-args.json", "json", "orchestrator", "round loop"),
    _local("gate-answers", "<slug>/gate-answers.json", "json", "a person", "gate resolver"),
    _local("task", "<slug>/tasks/<stem>.md", "frontmatter", "planner; ticks, status and log: ingest", "board", "lint"),
    # one run: what is derived
    _local("board-index", "<slug>/tasks/_index.md", "markdown", "planner; status cells: ingest", "people"),
    _local("discovery-ledger", "<slug>/discovery/ledger.md", "markdown", "ingest", "planner", "hill", "ship"),
    _local("verdict-ledger", "<slug>/evaluation/.verdicts-<stem>.jsonl", "jsonl", "ingest", "evaluator", "verdict"),
    _local("legs", "<slug>/legs.jsonl", "jsonl", "ingest", "leg probe", "concurrency"),
    _local("ingest-record", "<slug>/receipts/ingest.jsonl", "jsonl", "ingest", "ingest", "status"),
    _local("rejection", "<slug>/rejections/<stem>.json", "json", "shapeupd", "agents", "people"),
    _local("conflict", "<slug>/conflicts/<stem>", "any", "shapeupd", "people"),
    _local("journal", "<slug>/journal/<stem>", "jsonl", "shapeupd", "shapeupd"),
    _local("ingest-lock", "<slug>/.ingest.lock/owner.json", "json", "whoever reduces", "whoever reduces"),
    _local("gates", "<slug>/gates.jsonl", "jsonl", "gate resolver", "graph", "export"),
    _local("breakers", "<slug>/breakers.jsonl", "jsonl", "shapeupd", "budget", "status", "people"),
    _local("gate-h", "<slug>/gate-h.jsonl", "jsonl", "shapeupd", "orchestrator", "people"),
    _local("gate-h-view", "<slug>/gate-h.md", "markdown", "shapeupd", "people"),
    _local("clock", "<slug>/clock.json", "json", "shapeupd", "budget"),
    _local("t0-verdict", "<slug>/t0/verdicts/<stem>.json", "json", "verify t0", "evaluator", "hill"),
    _local("trials", "<slug>/t0/trials.jsonl", "jsonl", "verify t0", "compile", "ship", "stats"),
    _local("seesaw", "<slug>/seesaw/registry.json", "json", "shapeupd", "verify t0"),
    _local("hill-trail", "<slug>/hill.jsonl", "jsonl", "shapeupd", "hill", "people"),
    _local("graph", "<slug>/graph.jsonl", "jsonl", "graph", "resume"),
    _local("snapshot", "<slug>/run-snapshot.json", "json", "snapshot", "people"),
    _local("evaluation", "<slug>/evaluation/<stem>.md", "markdown", "evaluator", "ship"),
    _local("qa", "<slug>/qa/<stem>.md", "markdown", "qa-edge-hunter", "ship"),
    _local("orient", "<slug>/orient/<stem>.md", "markdown", "orient", "analyze"),
    _local("trace", "<slug>/trace/<stem>", "any", "trace lint", "orchestrator"),
    _local("working", "<slug>/working/**", "any", "planner", "planner"),
    _local("spikes", "<slug>/spikes/**", "any", "task-executor", "task-executor"),
    _local("reports", "<slug>/reports/**", "markdown", "scope-hammer", "orchestrator"),
    # one checkout
    _local("active-scope", "active-scope", "json", "open", "budget", "snapshot"),
    _local("active-order", "active-order", "json", "compile", "agent hooks"),
    _local("decisions", "decisions.jsonl", "jsonl", "hooks", "stats", "export"),
    _local("checkout-answers", "gate-answers.json", "json", "a person", "gate resolver"),
    _local("safety-overrides", "safety-overrides.json", "json", "a person", "hooks"),
    _local("export", "exports/**", "any", "export", "other tools"),
    _local("metrics", "metrics/<stem>.jsonl", "jsonl", "close", "stats"),
    _local("policy", "policy.json", "json", "shapeupd", "hooks"),
    _local("policy-paths", "policy.paths", "lines", "shapeupd", "hooks"),
    _local("commits", "commits.jsonl", "jsonl", "shapeupd", "pre-push", "people"),
    _local("audit", "audit.json", "json", "shapeupd", "shapeupd"),
    _local("log", "shapeupd.log", "jsonl", "shapeupd", "people"),
    _local("local-settings", "shapeupd.toml", "toml", "a person", "shapeupd"),
    _local("daemon", "daemon.json", "json", "shapeupd", "status"),
    _local("daemon-lock", "daemon.lock", "text", "shapeupd", "shapeupd"),
    # committed specs
    _shared("scope-contract", "<slug>/scopes/<stem>.md", "contract", "scope-architect", "compile", "T0", "lint"),
    _shared("hill-shard", "<slug>/hill/<stem>.yml", "yaml", "hill", "people", "board"),
    _shared("wiring-map", "<slug>/wiring-map.md", "contract", "solution-architect", "trace lint", "graph"),
    _shared("project-profile", "<slug>/project-profile.md", "contract", "orchestrator", "trace lint"),
    _shared("requirements", "<slug>/requirements.md", "markdown", "planner", "lint"),
    _shared("round-ledger", "<slug>/round-ledger.md", "markdown", "orchestrator", "compile", "ship"),
    _shared("scope-board", "<slug>/scope-board.md", "markdown", "scope-architect", "people"),
    _shared("hill-chart", "<slug>/hill-chart.md", "markdown", "hill", "people"),
    _shared("report", "<slug>/REPORT.md", "markdown", "ship", "people"),
    _shared("use-case", "<slug>/spec/usecases/<stem>.md", "markdown", "planner", "evaluator", "lint"),
    _shared("spec", "<slug>/spec/**", "markdown", "planner", "evaluator", "lint"),
    _shared("shaping", "<slug>/shaping/<stem>.md", "markdown", "people", "orient", "analyze"),
    _shared("glossary", "<slug>/glossary.md", "markdown", "people; translator", "orient", "analyze"),
    _shared("knowledge-base", "knowledge-base/<stem>.md", "markdown", "coach", "workers"),
    Artifact("settings", ".shapeupd.toml", "SHARED", "toml", "people", ("shapeupd",)),
)

_BY_KIND = {artifact.kind: artifact for artifact in KINDS}
_HOLES = {"<slug>": r"(?P<slug>[a-z0-9][a-z0-9-]*)", "<stem>": r"(?P<stem>[^/\n]+?)", "**": r"[^\n]+"}


def _pattern(template: str) -> str:
    return "".join(_HOLES.get(part) or re.escape(part) for part in re.split(r"(<slug>|<stem>|\*\*)", template))


@cache
def _shelves() -> dict[tuple[str, str], list[tuple[str, re.Pattern[str]]]]:
    """The patterns by root and third segment, so that a path meets a few of them; compiled when first asked for.

    `_index.md` must be tried before `<stem>.md`, so the most literal template comes first.
    """
    shelves: dict[tuple[str, str], list[tuple[str, re.Pattern[str]]]] = {}
    for artifact in sorted(KINDS, key=lambda a: (a.template.count("<stem>") + 2 * a.template.count("**"), a.kind)):
        pattern = re.compile(_pattern(artifact.template))
        shelves.setdefault(_shelf(artifact.template), []).append((artifact.kind, pattern))
    return shelves


def _shelf(path: str) -> tuple[str, str]:
    parts = path.split("/", 3)
    return parts[0], parts[2] if len(parts) > 2 and parts[1] not in NOT_A_SLUG else ""


@lru_cache(maxsize=1 << 12)
def classify(path: str) -> Place | None:
    """The kind, slug and stem of a repository-relative path; None for a path the table does not know."""
    for kind, pattern in _shelves().get(_shelf(path), ()):
        if found := pattern.fullmatch(path):
            parts = found.groupdict()
            if parts.get("slug") not in NOT_A_SLUG:
                return Place(kind, parts.get("slug"), parts.get("stem"))
    return None


def path_of(kind: str, slug: str = "", stem: str = "") -> str:
    """The path of one artifact. Slug and stem must be in their alphabets already: no check is made here."""
    return _BY_KIND[kind].template.replace("<slug>", slug).replace("<stem>", stem)


def stem_at(path: str) -> str:
    """The file name at the end of a path, without its ending: what orders and results are joined by."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def folder_of(kind: str, slug: str = "") -> str:
    """The folder that holds artifacts of this kind."""
    return path_of(kind, slug).rsplit("/", 1)[0]
