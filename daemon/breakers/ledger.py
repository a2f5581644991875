"""What breakers.jsonl and gate-h.jsonl are worth: our own rows by the journal, foreign ones by what they could loosen. Source: rulings A2, F1, F3, R-20.

Agents can write where the ledgers lie. A trip that somebody else wrote binds (the strict direction), an extension that somebody else
wrote grants nothing, and a row of ours that was cut out still counts.
"""

from __future__ import annotations

from typing import NamedTuple

from parsers.breaker_ledger import BreakerLedger, Proposal, parse_breakers, parse_proposals


class Queue(NamedTuple):
    """The recorded trips, the extensions that count, and the proposals. `foreign`: lines that we never wrote."""

    ledger: BreakerLedger
    proposals: tuple[Proposal, ...]
    foreign: int = 0
    lost: int = 0  # lines that we wrote and that are gone


def read_queue(breakers: bytes, proposals: bytes, own_breakers: bytes, own_proposals: bytes) -> Queue:
    """The queue as the files stand, held against what the journal says we wrote."""
    own, found = parse_breakers(own_breakers), parse_breakers(breakers)
    trips = tuple(dict.fromkeys((*own.trips, *found.trips)))
    queued = {proposal.identity: proposal for proposal in parse_proposals(proposals)}
    queued |= {proposal.identity: proposal for proposal in parse_proposals(own_proposals)}
    foreign = lost = 0
    for data, written in ((breakers, own_breakers), (proposals, own_proposals)):
        there, ours = _lines(data), _lines(written)
        foreign += len(there - ours)
        lost += len(ours - there)
    return Queue(BreakerLedger(trips, own.extensions), tuple(queued.values()), foreign, lost)


def _lines(data: bytes) -> frozenset[bytes]:
    return frozenset(line for line in data.split(b"\n") if line.strip())
