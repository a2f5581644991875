"""Lints the committed specs of one feature whenever they change, and tells the log what that brought. Source: issue 6 item 4, protocol §5.2, §5.3.

Nothing is written: whoever asks `shapeupd lint` reads the files anew. What stood when the daemon started is told in one row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from daemon.disk import DiskTree
from daemon.lint_facts import project_files
from daemon.log import Log
from parsers.layout import SHARED_ROOT, classify
from reducers.lint_spec.facts import read_spec_facts
from reducers.lint_spec.lint import lint_spec
from reducers.lint_spec.news import News, Told, compare, tell_specs
from reducers.lint_trace.facts import read_trace_facts
from reducers.lint_trace.lint import lint_trace

MOST_ROWS = 20  # findings that one change tells one by one

# Kinds whose globs and paths are compared with the files of the project, which are listed anew for them alone.
_NAMES_FILES = frozenset({"scope-contract", "wiring-map", "project-profile"})
KINDS = _NAMES_FILES | frozenset(
    "use-case spec requirements scope-board shaping glossary round-ledger report hill-chart hill-shard intake".split()
)


class SpecKeeper:
    """Used by the loop alone."""

    def __init__(self, tree: DiskTree, slug: str, log: Log) -> None:
        self._tree = tree
        self._slug = slug
        self._log = log
        self._files: tuple[str, ...] | None = None
        self._known: tuple[Told, ...] | None = None

    def keep(self, marked: Collection[str]) -> None:
        """Lint where any of these files is a spec, or at the first call; tell what is new and what is gone."""
        kinds = {place.kind for path in marked if (place := classify(path))} & KINDS
        if self._known is not None and not kinds:
            return
        if not self._tree.list(f"{SHARED_ROOT}/{self._slug}"):
            self._known = self._known or ()
            return
        told = self._lint(lists_files=self._files is None or bool(kinds & _NAMES_FILES))
        before, self._known = self._known, told
        if before is None:
            self._tell_standing(told)
        else:
            self._tell(compare(before, told))

    def _lint(self, *, lists_files: bool) -> tuple[Told, ...]:
        if lists_files or self._files is None:
            self._files = project_files(self._tree.root)
        files = self._with_specs(self._files)
        spec = lint_spec(read_spec_facts(self._tree, self._slug, files))
        return tell_specs(spec, lint_trace(read_trace_facts(self._tree, self._slug, files), is_gate=True))

    def _with_specs(self, files: Sequence[str]) -> tuple[str, ...]:
        """The project's files as last listed, with the feature's own as they are now."""
        own = f"{SHARED_ROOT}/{self._slug}/"
        folder = self._tree.root / SHARED_ROOT / self._slug
        return (*(path for path in files if not path.startswith(own)), *(own + path for path in project_files(folder)))

    def _tell_standing(self, told: Sequence[Told]) -> None:
        if told:
            red = sum(one.level == "red" for one in told)
            self._write("lint.standing", self._slug, "warn" if red else "info", red=red, warn=len(told) - red)

    def _tell(self, news: News) -> None:
        for one in news.found[:MOST_ROWS]:
            fields = {"rule": one.rule, "lint": one.level, "scope": one.scope, "what": one.what, "fix": one.fix}
            self._write("lint.found", one.where, "warn" if one.level == "red" else "info", **fields)
        for one in news.cleared[:MOST_ROWS]:
            self._write("lint.cleared", one.where, "info", rule=one.rule, scope=one.scope, what=one.what)
        if more := len(news.found[MOST_ROWS:]) + len(news.cleared[MOST_ROWS:]):
            self._write("lint.standing", self._slug, "info", more=more, note="`shapeupd lint` lists all of them")

    def _write(self, event: str, subject: str, level: str, **fields: Any) -> None:
        self._log.write(event, level=level, slug=self._slug, subject=subject, **fields)
