"""The stable vocabulary of log events, one meaning each, and the fault codes beside it. Source: cli §3, rulings D4.

Adding a name is free; changing or dropping one breaks the scripts and tests that wait for it.
"""

from __future__ import annotations

from parsers.faults import CODES

__all__ = ["CODES", "EVENTS"]

EVENTS: dict[str, str] = {
    # daemon
    "daemon.starting": "the lock is held; state is being read",
    "daemon.ready": "everything on disk is settled and the watch works",
    "daemon.stopping": "a signal or an error ends this daemon; open work is finished first",
    "daemon.recovered": "the journal's tail was replayed, or a dead part was started again",
    "daemon.error": "a failure to act; `error` says what, why and what to do",
    # watch
    "watch.overflow": "the kernel dropped events; a full rescan follows",
    "watch.rescan": "a rescan found what no event had told",
    "watch.degraded": "events do not arrive here; polling instead",
    # order
    "order.admitted": "an order landed and may be dispatched",
    "order.rejected": "an order landed and was refused; rejections/ says why",
    "order.answered": "an order has its result",
    "order.refused": "a breaker or a budget says no to an order",
    # result
    "result.applied": "a result was reduced into the shared state",
    "result.rejected": "a result landed and was refused; rejections/ says why",
    "result.duplicate": "the same bytes landed again; nothing changed",
    "result.adopted": "another reducer had applied it already",
    "result.pending": "a result waits for its order",
    "result.superseded": "a new result of an answered order was applied over the old one",
    # task, board
    "task.updated": "a task's status or ticks changed",
    "task.unblocked": "all that a task depended on is done",
    "board.written": "the board index was rewritten",
    "discovery.recorded": "an entry was added to the discovery ledger",
    "verdict.recorded": "rows were added to a verdict ledger",
    "ac.unticked": "a refuted acceptance criterion was unticked",
    # t0, hill
    "t0.scored": "a trial was scored",
    "tree.kept": "a trial's tree became the kept one",
    "tree.restored": "the kept tree was put back",
    "hill.moved": "a scope changed its hill phase",
    # lint
    "lint.standing": "how many findings of the spec and trace lints stand against a feature's committed specs",
    "lint.found": "a change of the committed specs brought a finding of the spec or trace lint",
    "lint.cleared": "a finding of the spec or trace lint is gone",
    # breaker
    "breaker.warned": "a breaker is near",
    "breaker.tripped": "a breaker tripped, once per run and breaker",
    "breaker.extended": "somebody granted a run more time",
    "gate_h.queued": "a proposal waits at GATE H",
    # gate
    "gate.asked": "a run waits at a gate for a person",
    "gate.crossed": "a gate was crossed; the round ledger says by whom",
    "gate.aborted": "the answer at a gate ended the run",
    # commit
    "commit.accepted": "a hook let a commit pass",
    "commit.rejected": "a hook refused a commit",
    "commit.audited": "an unsigned commit was judged after the fact and is clean",
    "commit.bypassed": "a commit violates the policy and no hook accepted it",
    "hook.override": "a person overrode a hook and gave a reason",
    # writer
    "writer.stray": "a write outside every live substrate",
    "writer.foreign": "a derived file was edited by hand",
    "artifact.tampered": "an immutable artifact changed",
    # clock
    "clock.disagrees": "two clocks differ by more than 5 s",
    # escalation
    "escalation.opened": "a worker asks a question",
    "escalation.answered": "a question has its answer",
    "escalation.malformed": "a question cannot be read",
}
