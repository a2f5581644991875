"""What breakers.jsonl and gate-h.jsonl are worth: our own rows by the journal, foreign ones by what they could loosen. Source: rulings A2, F1, F3, R-20.

Agents can write where the ledgers lie. A trip that somebody else wrote binds (the strict direction), an extension that somebody else
wrote grants nothing, and a row of ours that was cut out still counts.
"""

from __future__ import annotations

from typing import NamedTuple

from parsers.breaker_ledger import BreakerLedger, Proposal, parse_breakers, parse_proposals


class Queue(NamedTuple):
    """The recorded trips, the extensions that count, and the proposals.

    `strayed`: by ledger (`breakers`, `gate-h`), how many lines we never wrote, and how many of ours are gone.
    """

    ledger: BreakerLedger
    proposals: tuple[Proposal, ...]
    strayed: tuple[tuple[str, int, int], ...] = ()


def read_queue(breakers: bytes, proposals: bytes, own_breakers: bytes, own_proposals: bytes) -> Queue:
    """The queue as the files stand, held against what the journal says we wrote."""
    own, found = parse_breakers(own_breakers), parse_breakers(breakers)
    trips = tuple(dict.fromkeys((*own.trips, *found.trips)))
    queued = {proposal.identity: proposal for proposal in parse_proposals(proposals)}
    queued |= {proposal.identity: proposal for proposal in parse_proposals(own_proposals)}
    strayed = []
    for kind, data, written in (("breakers", breakers, own_breakers), ("gate-h", proposals, own_proposals)):
        there, ours = _lines(data), _lines(written)
        if there != ours:
            strayed.append((kind, len(there - ours), len(ours - there)))
    return Queue(BreakerLedger(trips, own.extensions), tuple(queued.values()), tuple(strayed))


def _lines(data: bytes) -> frozenset[bytes]:
    return frozenset(line for line in data.split(b"\n") if line.strip())
