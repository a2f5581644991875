"""Which existing files the scopes may write: PA2 counts them, DISJOINT compares them. Source: protocol §5.2, §3.2.

A glob is only tried on the paths that begin as it does, so a large project costs a scope no more than what it may write.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import combinations

from parsers.globs import literal_prefix, matcher_of, matches
from reducers.lint_spec.facts import ScopeFacts
from reducers.lint_spec.findings import Finding, finding


class Substrates:
    """The files of the project, sorted, and what each scope may write of them."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = files
        self._of_path: dict[str, frozenset[str]] = {}

    def files_of(self, scope: ScopeFacts) -> frozenset[str]:
        """The existing files that the scope's allowed globs match."""
        if scope.path not in self._of_path:
            self._of_path[scope.path] = frozenset(path for glob in scope.allowed for path in self._matching(glob))
        return self._of_path[scope.path]

    def _matching(self, glob: str) -> Iterator[str]:
        prefix, is_match = literal_prefix(glob), matcher_of(glob)
        for at in range(bisect_left(self._files, prefix), len(self._files)):
            path = self._files[at]
            if not path.startswith(prefix):
                return
            if is_match(path):
                yield path


def lint_overlaps(scopes: Sequence[ScopeFacts], substrates: Substrates) -> Iterator[Finding]:
    """DISJOINT, SHARED-CONCURRENT: a file that two scopes may write, without or with the word of both."""
    for one, other in combinations(scopes, 2):
        for path in sorted(substrates.files_of(one) & substrates.files_of(other)):
            yield _overlap(one, other, path)


def _overlap(one: ScopeFacts, other: ScopeFacts, path: str) -> Finding:
    both, where = f"{one.scope_id}+{other.scope_id}", other.at("allowed_file_substrate")
    unsaid = [scope.scope_id for scope in (one, other) if not any(matches(glob, path) for glob in scope.shared)]
    if unsaid:
        what = f"{path} may be written by {one.scope_id} and {other.scope_id}, and {' and '.join(unsaid)} does not declare it shared"
        fix = "let one scope own the file, or name it under `shared_substrate` of both"
        return finding("DISJOINT", "red", where, what, fix, both)
    what = f"{path} may be written by {one.scope_id} and {other.scope_id}: they must not build concurrently"
    fix = "make one `depends_on` the other, or build them one after the other"
    return finding("SHARED-CONCURRENT", "warn", where, what, fix, both)
