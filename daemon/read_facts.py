"""Reads the files of one run for the read plane: ship report, graph and export; nothing is written. Source: protocol §5.8, §5.10, §5.11, ruling K.

What is no plain file, or holds no record, is counted and left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from daemon.disk import DiskTree
from daemon.scan import is_fact_path
from parsers.contracts import ParsedContract, parse_contract
from parsers.facts import sha256_of
from parsers.frontmatter import Value, parse_frontmatter
from parsers.layout import folder_of, path_of, stem_at
from parsers.ledgers import parse_ingest_rows, parse_rows
from parsers.markdown import decode
from parsers.receipts import run_id_of
from parsers.requirements import parse_requirements
from parsers.strict_json import parse_strict
from parsers.t0_verdict import parse_t0_verdict
from parsers.tree import Unreadable
from parsers.trials import SCOPE_ID, parse_trials
from reducers.identity import APPLIED
from reducers.run_records import NOTHING, ArtifactFile, Document, Filed, RunRecords, ScopeRecord

_TRACE_FILES = ("receipt", "trials", "legs")
_TRACE_FOLDERS = ("order", "result", "t0-verdict")


def read_run_records(tree: DiskTree, slug: str, *, with_decisions: bool = False) -> RunRecords | None:
    """The run that lies in a feature's folder; None where there is none. `with_decisions`: the checkout's hook decisions too."""
    if not _has_run(tree, slug):
        return None
    return _Reader(tree, slug).records(with_decisions)


def _has_run(tree: DiskTree, slug: str) -> bool:
    if any(tree.stamp(path_of(kind, slug)) is not None for kind in _TRACE_FILES):
        return True
    return any(name.endswith(".json") for kind in _TRACE_FOLDERS for name in tree.list(folder_of(kind, slug)))


def read_bytes(tree: DiskTree, path: str) -> bytes | None:
    """The bytes of a file; None for anything that is none, or too large to be one."""
    try:
        return tree.read(path)
    except (Unreadable, OSError):
        return None


class _Reader:
    """One look at one feature; counts what it could not read."""

    def __init__(self, tree: DiskTree, slug: str) -> None:
        self._tree = tree
        self._slug = slug
        self._skipped = 0

    def records(self, with_decisions: bool) -> RunRecords:
        slug = self._slug
        receipt = self._document(path_of("receipt", slug))
        wiring = self._contract("wiring-map", path_of("wiring-map", slug))
        read = RunRecords(
            slug,
            run_id_of(receipt),
            receipt,
            self._harness(),
            tuple(self._filed("order")),
            tuple(self._results()),
            tuple(self._artifacts()),
            self._rows("trials"),
            parse_trials(read_bytes(self._tree, path_of("trials", slug)) or b""),
            self._rows("gates"),
            tuple(self._ledgers()),
            self._rows("decisions") if with_decisions else (),
            tuple(self._scopes()),
            tuple(n for n in self._tree.list(folder_of("use-case", slug)) if n.endswith(".md") and n[0] not in "._"),
            self._requirements(),
            wiring.rows if wiring else (),
        )
        return read._replace(skipped=self._skipped)

    def _document(self, path: str) -> Document:
        """The JSON object in a file; empty where the file is not there, or holds none: then it is counted."""
        if self._tree.stamp(path) is None:
            return NOTHING
        data = read_bytes(self._tree, path)
        value = None if data is None else parse_strict(data, path).value
        if isinstance(value, dict):
            return value
        self._skipped += 1
        return NOTHING

    def _filed(self, kind: str) -> Iterator[Filed]:
        for path in self._facts(kind):
            if document := self._document(path):
                yield Filed(stem_at(path), document)

    def _facts(self, kind: str) -> Iterator[str]:
        folder = folder_of(kind, self._slug)
        paths = (f"{folder}/{name}" for name in self._tree.list(folder) if name.endswith(".json"))
        return (path for path in paths if is_fact_path(path))

    def _results(self) -> Iterator[Filed]:
        rows = parse_ingest_rows(read_bytes(self._tree, path_of("ingest-record", self._slug)) or b"")
        applied = {row.sha256 for row in rows if row.outcome in APPLIED}
        for found in self._filed("result"):
            if found.document.get("synthetic") is True:
                continue
            data = read_bytes(self._tree, path_of("result", self._slug, found.stem)) if rows else None
            yield found._replace(is_applied=not rows or (data is not None and sha256_of(data) in applied))

    def _artifacts(self) -> Iterator[ArtifactFile]:
        for path in self._facts("t0-verdict"):
            verdict = parse_t0_verdict(read_bytes(self._tree, path) or b"", path)
            if verdict is None:
                self._skipped += 1
            else:
                yield ArtifactFile(stem_at(path), verdict)

    def _rows(self, kind: str) -> tuple[Document, ...]:
        return self._rows_at(path_of(kind, self._slug))

    def _rows_at(self, path: str) -> tuple[Document, ...]:
        if self._tree.stamp(path) is None:
            return ()
        data = read_bytes(self._tree, path)
        rows = parse_rows(data or b"")
        lines = sum(bool(line.strip()) for line in data.split(b"\n")) if data is not None else 1
        self._skipped += lines - len(rows)
        return rows

    def _ledgers(self) -> Iterator[tuple[str, tuple[Document, ...]]]:
        before, after = path_of("verdict-ledger", "-", "<stem>").rpartition("/")[2].split("<stem>")
        folder = folder_of("verdict-ledger", self._slug)
        for name in self._tree.list(folder):
            if name.startswith(before) and name.endswith(after):
                yield name[len(before) : -len(after)], self._rows_at(f"{folder}/{name}")

    def _harness(self) -> dict[str, Value]:
        path = path_of("harness-run", self._slug)
        block, _ = parse_frontmatter(decode(read_bytes(self._tree, path) or b""), path)
        return block.values if block else {}

    def _contract(self, kind: str, path: str) -> ParsedContract | None:
        data = read_bytes(self._tree, path)
        return None if data is None else parse_contract(kind, decode(data), path)

    def _scopes(self) -> Iterator[ScopeRecord]:
        folder = folder_of("scope-contract", self._slug)
        for name in self._tree.list(folder):
            stem = stem_at(name)
            contract = self._contract("scope-contract", f"{folder}/{name}") if name.endswith(".md") else None
            if contract is None or not SCOPE_ID.match(stem) or not contract.has_frontmatter:
                continue
            scope_id, title = contract.keys.get("scope_id"), contract.keys.get("title")
            yield ScopeRecord(
                scope_id if isinstance(scope_id, str) and scope_id else stem,
                title if isinstance(title, str) else None,
                len(contract.texts("allowed_file_substrate")),
                contract.texts("use_cases"),
                contract.texts("covers"),
                contract.texts("depends_on"),
            )

    def _requirements(self) -> tuple[str, ...]:
        text = decode(read_bytes(self._tree, path_of("requirements", self._slug)) or b"")
        return tuple(dict.fromkeys(found.id for found in parse_requirements(text)))
