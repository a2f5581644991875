"""Who may write one path of the working tree, `.shapeup/` included, told from the path alone. Pure. Source: protocol §3.3, W-10, W-12, W-16, ruling E4.

What a commit changes is judged by hooks/policy.py, which sees the content. Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from hooks import refusals
from hooks.owners import may_write, owner_words
from hooks.path_change import PathChange
from hooks.policy import Grant, gate_of, is_local, kind_of, meant_spec, requires_live_order
from hooks.verdict import RULES, Violation
from parsers.addresses import slug_of, stem_of
from parsers.globs import folded
from parsers.layout import KINDS, LOCAL_ROOT, NOT_A_SLUG, path_of
from parsers.policy_file import Contract, Policy

OPEN = "open"  # the rule by which everything passes while no live order narrows anything
Way = Literal["edit", "write", "create"]

_PLAN = ("analyze", "reconcile")
_BUILD = ("execute", "fix", "spike")

# The folders of a run whose writer is fixed, whatever a glob as wide as `.shapeup/<slug>/**` opens: the operations whose
# orders may write there, none for what no order opens. Sources: protocol §1.2, W-10, E4.
LOCAL_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "tasks": _PLAN,
    "working": (*_PLAN, "retrofit-surface", "coverage"),
    "evaluation": ("evaluate",),
    "qa": ("hunt",),
    "orient": ("orient",),
    "spikes": _BUILD,
    "reports": ("hammer",),
} | dict.fromkeys(
    (
        "orders",
        "results",
        "receipts",
        "t0",
        "seesaw",
        "discovery",
        "escalations",
        "trace",
        "shaping",
        "journal",
        "rejections",
        "conflicts",
        ".ingest.lock",
    ),
    (),
)
_VERDICTS = ".verdicts-"  # ledgers beside the evaluator's reports


class WriteVerdict(NamedTuple):
    """Whether the write is let through, and by what.

    `rule`: the field that opens the path (`allowed`, `shared`, `append_only`, `human_globs`, `results`, `escalations`),
    `open` where no live order narrows anything, else the id of the rule that denies. `by_content`: the path may be
    written, what is written is still to be judged. `violation`: None where it is let through.
    """

    rule: str
    order_id: str | None = None
    pattern: str | None = None
    by_content: bool = False
    violation: Violation | None = None

    @property
    def is_allowed(self) -> bool:
        return self.violation is None


def judge_write(path: str, policy: Policy, *, way: Way, only_live: bool = False) -> WriteVerdict:
    """The verdict on one write. `path` is relative to the repository, links of its folder resolved by the caller (W-16).

    `way`: `edit` changes a part of a file, `write` replaces it, `create` makes one. `only_live`: an answered order
    permits nothing any more (W-13); else it does until it is superseded, as for a commit (E2).
    """
    name = normal_path(path)
    if name is None:
        why = "it leads out of the repository, and no glob does"
        return _denied(
            Violation("OUTSIDE", path.encode("utf-8", "surrogateescape"), None, RULES["OUTSIDE"], why, _STAY)
        )
    if only_live:
        policy = policy._replace(contracts=tuple(order for order in policy.contracts if not order.answered))
    if not policy.is_constraining:
        return WriteVerdict(OPEN)
    return _judge_local(name, policy, way) if is_local(name) else _judge_shared(name, policy, way)


def normal_path(path: str) -> str | None:
    """The path without `.`, `..` and empty segments; None where it is absolute or leaves the repository or names its top."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) if parts and not path.startswith("/") else None


def explain_path(path: str, policy: Policy) -> dict[str, object]:
    """Who may write the path, by which order and glob, and what to ask for where nobody may. Source: rulings J `explain`.

    `owner`: the path's fixed writer, else the order that may write it, None where there is neither. `ask` None: nothing.
    """
    name = normal_path(path) or path
    verdict = judge_write(path, policy, way="edit")
    if not verdict.is_allowed:  # some files may only be made
        made = judge_write(path, policy, way="create")
        verdict = made if made.is_allowed else verdict
    if verdict.rule == OPEN and requires_live_order(policy) and not is_local(name):
        verdict = _judge_shared(name, policy, "edit")
        verdict = _denied(refusals.no_live_order()) if verdict.rule == "OUTSIDE" else verdict
    return {
        "path": name,
        "verdict": "allow" if verdict.is_allowed else "deny",
        "rule": verdict.rule,
        "order_id": verdict.order_id,
        "pattern": verdict.pattern,
        "owner": _fixed_writer(name) or verdict.order_id,
        "ask": _ask(name, verdict, policy),
    }


_STAY = "write inside the repository"


def _judge_shared(name: str, policy: Policy, way: Way) -> WriteVerdict:
    gate, change = gate_of(policy), _change(name)
    undo = refusals.REMOVE if way == "create" else refusals.RESTORE
    if (glob := gate.human_glob(name)) is not None:
        return WriteVerdict("human_globs", None, glob)
    freezes = gate.freezes.find(name)
    whole = next((freeze for freeze in freezes if freeze.heading is None), None)
    if whole:
        found = refusals.frozen(change, whole.order_id, whole.glob, None, undo)
        return _denied(found, whole.glob)
    if hit := gate.freezes.collision(name):
        return _denied(refusals.collision(change, hit.order_id, hit.glob, undo), hit.glob)
    kind, grants = kind_of(name), list(gate.grants.find(name))
    if not grants:
        return _denied(gate.outside(change, undo))
    owned = [grant for grant in grants if may_write(kind, grant.contract.operation)]
    if not owned:
        return _denied(refusals.sole_writer(change, grants[0].contract, kind, undo), grants[0].glob)
    if meant := meant_spec(name):
        return _denied(refusals.disguised(change, meant, undo))
    return _judge_grants(change, owned, way, by_content=bool(freezes))


def _judge_grants(change: PathChange, owned: list[Grant], way: Way, *, by_content: bool) -> WriteVerdict:
    """A file that is open altogether may be written; one that may only grow, or in sections, is not to be replaced."""
    best = next((grant for grant in owned if grant.is_whole), owned[0])
    order_id = best.contract.order_id
    if best.is_whole or way != "write":
        needs_look = by_content or not (best.is_whole or (way == "create" and best.heading is None))
        return WriteVerdict(best.field, order_id, best.glob, by_content=needs_look)
    headings = [grant.heading for grant in owned if grant.heading is not None]
    return _denied(refusals.append_only(change, order_id, headings, refusals.RESTORE), best.glob)


def _judge_local(name: str, policy: Policy, way: Way) -> WriteVerdict:
    """W-10: an order's own result, questions, and what its substrate opens as far as the fixed writers leave it."""
    gate, change = gate_of(policy), _change(name)
    permitting = [order for order in policy.contracts if order.permits]
    for order in permitting:
        if name == own_result(order):
            return WriteVerdict("results", order.order_id, name)
    slug = name.split("/")[1] if name.count("/") > 1 else ""
    if way == "create" and _is_question(name):
        asker = next((order for order in permitting if slug_of(order.order_id) == slug), None)
        if asker:
            return WriteVerdict("escalations", asker.order_id, f"{LOCAL_ROOT}/{slug}/escalations/*.yml")
    operations = local_operations(name)
    if operations == ():
        return _denied(_closed(change, None))
    freezes = [freeze for freeze in gate.freezes.find(name) if freeze.heading is None]
    if freezes:
        found = refusals.frozen(change, freezes[0].order_id, freezes[0].glob, None, refusals.LEAVE)
        return _denied(found, freezes[0].glob)
    grants = list(gate.grants.find(name))
    if not grants:
        return _denied(gate.outside(change, refusals.LEAVE))
    owned = [grant for grant in grants if operations is None or grant.contract.operation in operations]
    if not owned:
        return _denied(_closed(change, grants[0].contract), grants[0].glob)
    return _judge_grants(change, owned, way, by_content=False)


def own_result(order: Contract) -> str | None:
    """Where the order's worker lays its result."""
    stem = stem_of(order.order_id)
    return path_of("result", slug_of(order.order_id), stem) if stem else None


def local_operations(path: str) -> tuple[str, ...] | None:
    """The operations whose orders may write a path of the LOCAL tree; empty: no order may; None: whichever a glob lets."""
    parts = folded(path)[0].split("/")
    if len(parts) < 3 or parts[1] in NOT_A_SLUG:
        return ()  # pointers, settings and records of the whole checkout (§1.3)
    if parts[2] in LOCAL_FOLDERS:
        return () if parts[-1].startswith(_VERDICTS) else LOCAL_FOLDERS[parts[2]]
    if len(parts) > 3:
        return None
    is_ledger = parts[2].endswith((".jsonl", ".log")) or parts[2].startswith("gate-")
    return () if is_ledger or parts[2] in _RUN_FILES else None


# Files directly in a run's folder, each with its own writer, and none of them a worker.
_RUN_FILES = frozenset(
    kind.template.rpartition("/")[2]
    for kind in KINDS
    if kind.template.startswith(f"{LOCAL_ROOT}/<slug>/") and kind.template.count("/") == 2
) | {"clock.json", "round-ledger.md"}


def _is_question(name: str) -> bool:
    parts = name.split("/")
    file = parts[-1]
    return len(parts) == 4 and parts[2] == "escalations" and file[0] != "." and file.endswith((".yml", ".yaml"))


def _fixed_writer(name: str) -> str | None:
    """Who alone writes there by the layout; None where no kind is known or whoever an order lets may."""
    kind = kind_of(name)
    artifact = next((artifact for artifact in KINDS if artifact.kind == kind), None)
    if artifact is None:
        return None
    return artifact.writer if artifact.tier == "LOCAL" else owner_words(kind)


def _closed(change: PathChange, order: Contract | None) -> Violation:
    writer = _fixed_writer(change.name) or "shapeupd or a person"
    operations = local_operations(change.name)
    owner = f"an order of {' or '.join(operations)}" if operations else f"no order; {writer} writes it"
    what = (
        f"{order.order_id} ({order.operation or 'no operation'}) is not the writer of this file"
        if order
        else RULES["R-19"]
    )
    why = f"whatever a glob says, this is opened by {owner}"
    return Violation("R-19", change.path, order.order_id if order else None, what, why, refusals.LEAVE)


def _ask(name: str, verdict: WriteVerdict, policy: Policy) -> str | None:
    if verdict.is_allowed:
        return "only what it may hold is still judged, when it is committed" if verdict.by_content else None
    if normal_path(name) is None:
        return "a path inside the repository: no substrate leaves it"
    match verdict.rule:
        case "FROZEN" | "COLLISION" if verdict.order_id:
            return f"wait for the result of {verdict.order_id}; then it freezes nothing"
        case "R-19":
            return f"leave it to its writer: {_fixed_writer(name) or 'shapeupd or a person'}"
        case "NO-LIVE-ORDER":
            return "an order whose substrate holds the path"
    slugs = {slug_of(order.order_id) for order in policy.contracts if order.permits}
    where = f"{LOCAL_ROOT}/{slugs.pop() if len(slugs) == 1 else '<slug>'}/escalations/<name>.yml"
    return f"a wider substrate: a question of kind substrate-expansion that names the path, as {where}"


def _change(name: str) -> PathChange:
    """A change of that path; what it was and is plays no part here."""
    return PathChange("M", name.encode("utf-8", "surrogateescape"), "100644", "100644", "", "")


def _denied(violation: Violation, pattern: str | None = None) -> WriteVerdict:
    return WriteVerdict(violation.rule, violation.order_id, pattern, violation=violation)
