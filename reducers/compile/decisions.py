"""What people decided, as an order carries it: `payload.decisions`. Source: protocol §2.5, W-11, D-1, advisor §5 M1, §11, ruling I3.

Rows of the three question kinds are numbered ESC-01, ESC-02 … in file order; rows of kind `cut` and `other` keep D-<row>. A row
that says `gate`, or that names a question kind but lacks a cell or a round, is no decision that a worker acts on.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from parsers.addresses import scope_stem
from parsers.round_ledger import NUMBERED_KINDS, UNSET, DecisionRow, RoundLedger, committed_text, parse_round_ledger

ANY_SCOPE = "*"
CARRIED = frozenset({"cut", "other", ""})  # beside the numbered kinds; a table without a Kind column says nothing of it
PRECEDENT = "resolved by precedent:"
_SUPERSET = " (superset)"
_ESC_CELL = re.compile(r"ESC-[0-9]+")
_ROUND = re.compile(r"0*[1-9][0-9]{0,8}\Z")
_NOT = re.compile(r"n't(?!\w)")
_ODD = re.compile(r"[^\w\s./'+#%-]")
_EDGES = "./'-+_#"


class Carried(NamedTuple):
    """One decision with its id. `scope_id` is `*` where it holds for all; empty texts where the table has no such column."""

    id: str
    answer: str
    question: str
    kind: str
    round: str
    scope_id: str
    resolved_by: str

    @property
    def is_reuse(self) -> bool:
        return self.resolved_by.casefold().startswith(PRECEDENT)

    @property
    def reference(self) -> str:
        """The row that a reuse rests on."""
        return self.resolved_by[len(PRECEDENT) :].strip().removesuffix(_SUPERSET)

    @property
    def key(self) -> tuple[str, str, str]:
        """Scope, class and question: a later answer to the same key takes the place of the earlier one."""
        named = "question" if self.kind in ("design-decision", "spec-ambiguity") else self.kind
        return scope_stem(self.scope_id) or self.scope_id, named, normal_question(self.question)


def project_decisions(shared: bytes, local: bytes = b"", scope_id: str | None = None) -> list[dict[str, object]]:
    """The decisions that hold for the scope, oldest first; `scope_id` None: for every scope. SHARED rows first, then the LOCAL ones that it lacks (D-1)."""
    seen: set[tuple[str, ...]] = set()
    taken: dict[str, Carried] = {}
    plain: list[Carried] = []
    for data, mark in ((shared, ""), (local, "L")):
        ledger = parse_round_ledger(data)
        for found, cells in _carried(ledger, scope_id):
            if cells in seen and mark:
                continue
            own = found if found.id not in taken else found._replace(id=found.id.replace("-", f"-{mark}", 1))
            taken[own.id] = own
            plain.append(own)
        seen |= {row.cells for row in ledger.rows}
    return [_row(one) for one in effective(plain) if _holds_for(one, scope_id)]


def effective(decisions: Iterable[Carried]) -> tuple[Carried, ...]:
    """Those that no later row took the place of. Source: advisor J3.

    A reuse takes no place; it is not repeated where the row that it rests on is of the same scope and question.
    """
    rows = list(decisions)
    by_id = {row.id: row for row in rows}
    last = {row.key: at for at, row in enumerate(rows) if not row.is_reuse}
    return tuple(row for at, row in enumerate(rows) if last.get(row.key, at) <= at and not _is_repeated(row, by_id))


def _is_repeated(row: Carried, by_id: dict[str, Carried]) -> bool:
    rests_on = by_id.get(row.reference) if row.is_reuse else None
    return rests_on is not None and (rests_on.key[0], rests_on.key[2]) == (row.key[0], row.key[2])


def _holds_for(row: Carried, scope_id: str | None) -> bool:
    return scope_id is None or row.scope_id == ANY_SCOPE or scope_stem(row.scope_id) == scope_stem(scope_id)


def _row(one: Carried) -> dict[str, object]:
    round_: object = int(one.round) if _ROUND.match(one.round) else one.round
    return {**one._asdict(), "round": round_}


# --- rows of the table -----------------------------------------------------------------------------------------------


def _carried(ledger: RoundLedger, scope_id: str | None) -> Iterator[tuple[Carried, tuple[str, ...]]]:
    columns = {name.casefold(): at for at, name in reversed(list(enumerate(ledger.header)))}
    if "answer" not in columns:
        yield from _unnamed(ledger.rows, scope_id)
        return
    numbers = 0
    for position, row in enumerate(ledger.rows, 1):
        if len(row.cells) != len(ledger.header):
            continue  # a gate crossing, or a torn row
        cell = {name: row.cells[at] for name, at in columns.items()}
        kind = cell.get("kind", "")
        kind = "" if kind == UNSET else kind
        own = next((text for text in row.cells if _ESC_CELL.fullmatch(text)), None)
        is_numbered = kind in NUMBERED_KINDS
        if is_numbered and (not all(cell.values()) or not _ROUND.match(cell.get("round", "0"))):
            continue
        if not is_numbered and kind not in CARRIED:
            continue
        numbers += is_numbered
        id_ = own or (f"ESC-{numbers:02d}" if is_numbered else f"D-{position}")
        scope = cell.get("scope", "")
        yield (
            Carried(
                id_,
                cell["answer"],
                cell.get("question", ""),
                kind,
                cell.get("round", ""),
                ANY_SCOPE if scope in ("", "-", UNSET) else scope,
                cell.get("resolved by", ""),
            ),
            row.cells,
        )


def _unnamed(rows: Iterable[DecisionRow], scope_id: str | None) -> Iterator[tuple[Carried, tuple[str, ...]]]:
    """A table whose header says nothing, by the reference's rule: an ESC cell is the id, the last cell the answer, any cell the scope."""
    for row in rows:
        id_ = next((cell for cell in row.cells if _ESC_CELL.match(cell)), None)
        named = next((cell for cell in row.cells if scope_id and scope_stem(cell) == scope_stem(scope_id)), None)
        if id_ is not None and (scope_id is None or named is not None):
            yield Carried(id_, row.cells[-1], id_, "", "", named or ANY_SCOPE, ""), row.cells


def normal_question(text: str) -> str:
    """A question so that two spellings of it compare equal. Source: advisor M1, P10."""
    words = unicodedata.normalize("NFKC", committed_text(text)).casefold().replace("\u2019", "'").replace("\u02bc", "'")
    tokens = (token.strip(_EDGES) for token in _ODD.sub(" ", _NOT.sub(" not", words)).split())
    return " ".join(token for token in tokens if token)
