"""What the attempt before ran into, digested: `payload.digested_errors`. Source: protocol §2.5, §6.9, W-48."""

from __future__ import annotations

from collections.abc import Sequence

from parsers.addresses import scope_stem
from parsers.aegis import triple_rows
from parsers.trials import Trial
from reducers.compile.request import Artifact

MAX_TRIPLES = 3


def digested_errors(
    trials: Sequence[Trial],
    history: Sequence[dict[str, object]],
    artifacts: Sequence[Artifact],
    scope_id: str,
    round_: int | None,
    attempt: int | None,
) -> list[dict[str, object]]:
    """At most three triples: of the newest row of the scope's trial history that has any, which may be older than the last attempt.

    While the run has no trial at all: what the newest artifact of the attempt before found. A file name does not name a scope
    (W-48), so an artifact counts by what it says inside.
    """
    if trials:
        digests = (row["digest"] for row in reversed(history))
        return next((list(digest)[:MAX_TRIPLES] for digest in digests if isinstance(digest, list) and digest), [])
    if round_ is None or attempt is None or attempt < 2:
        return []
    own = [
        artifact
        for artifact in artifacts
        if artifact.address[:2] == (round_, attempt - 1) and scope_stem(artifact.scope_id) == scope_stem(scope_id)
    ]
    newest = max(own, key=lambda artifact: artifact.address, default=None)
    return triple_rows(newest.triples[:MAX_TRIPLES]) if newest else []
