"""The hooks that git runs for a commit: each judges, and says what it let pass. Source: design §4, rulings E2, E8, E17, targets 13-16, 25.

The stub `stubs/gate.sh` decides most calls by itself; what comes here is what it could not. Light module: standard library only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

from hooks.entry import Call
from hooks.freshness import NoPolicy, contract_in
from hooks.git import GitFailed, run_git
from hooks.replay import is_replaying
from hooks.staged import Judgement, judge_staged, owner_of, refuse, refuse_unjudged, tell_pardoned
from hooks.verdict import Violation
from parsers.policy_file import Contract
from parsers.trailers import OPERATION, ORDER, OVERRIDE, Trailers, is_all_trailers, parse_trailers

# In the worktree's git folder, one line of five words: `<git process> <order or -> <manner> <order to stamp or -> <operation
# or ->`. Manner `staged`: pre-commit let the index pass, and prepare-commit-msg need not look again; else what that has seen:
# `commit`, `amend`, `merge`.
NOTE = "shapeupd-checked"


def pre_commit(call: Call) -> int:
    """pre-commit and pre-merge-commit: the message is not known yet, so SHAPEUP_ORDER alone ties the commit to an order."""
    order_id = named_order()
    if order_id is None and is_replaying(git_dir()):
        return 0
    judgement = judge_staged(call, order_id)
    if judgement is None:
        return 0
    if judgement.violations:
        return refuse(call, judgement.violations, order_id)
    if call.hook == "pre-commit" and not judgement.pardoned:
        owner = contract_in(judgement.policy, order_id) if order_id else owner_of(judgement)
        leave_note(call, judgement, order_id, "staged", owner)
    return 0


def prepare_commit_msg(call: Call) -> int:
    """Runs under --no-verify too, so the check stands here again; then the message is stamped and a note is left."""
    path, source = call.args[0], call.args[1] if len(call.args) > 1 else ""
    message = read_message(path)
    trailers = parse_trailers(message)
    order_id = trailers.order_id or named_order()
    if order_id is None and is_replaying(git_dir()):
        return 0
    judgement = judge_staged(call, order_id)
    if judgement is None:
        return 0
    violations = (*judgement.violations, *misnamed(judgement, trailers))
    stamps: list[tuple[str, str]] = []
    if violations:
        if status := refuse(call, violations, order_id):
            return status
        stamps.append((OVERRIDE, reason_for_message()))
    tell_pardoned(call, judgement.pardoned, order_id)
    has_words = bool(parse_words(message)) or source not in ("message", "commit")
    if trailers.order_id is None and source != "merge" and has_words:
        order_id = order_id or (owner.order_id if not violations and (owner := owner_of(judgement)) else None)
        stamps += order_stamps(judgement, order_id)
    stamp(path, stamps)
    manner = {"commit": "amend", "merge": "merge"}.get(source, "commit")
    leave_note(call, judgement, order_id, manner)
    return 0


def commit_msg(call: Call) -> int:
    """The last word on the message: a trailer that came in after prepare-commit-msg holds the commit to that order."""
    message = strip_comments(read_message(call.args[0]))
    if is_all_trailers(message):
        return refuse_empty()
    trailers = parse_trailers(message)
    if trailers.order_id is None:
        return 0
    judgement = judge_staged(call, trailers.order_id)
    if judgement is None:
        return 0
    violations = (*judgement.violations, *misnamed(judgement, trailers))
    if violations and (status := refuse(call, violations, trailers.order_id)):
        return status
    leave_note(call, judgement, trailers.order_id, manner_of(call.caller))
    return 0


def reference_transaction(call: Call) -> int:
    """Strict mode: what a ref is to hold is judged as it will be pushed."""
    if call.args[:1] != ("prepared",):
        return 0
    from hooks.ref_updates import judge_updates

    return judge_updates(call, is_rebasing=is_rebasing(git_dir()) and named_order() is None)


def named_order() -> str | None:
    """The order of SHAPEUP_ORDER; None where the variable is empty."""
    return os.environ.get("SHAPEUP_ORDER") or None


def git_dir() -> str:
    """The git folder of the worktree that the hook runs for."""
    found = os.environ.get("GIT_DIR") or ".git"
    return found if os.path.isdir(found) else _ask_git_dir()


def _ask_git_dir() -> str:
    return os.fsdecode(run_git("rev-parse", "--git-dir").out).removesuffix("\n")


def is_rebasing(folder: str) -> bool:
    """Whether a rebase, and no `am`, moves refs."""
    if os.path.isdir(os.path.join(folder, "rebase-merge")):
        return True
    apply = os.path.join(folder, "rebase-apply")
    return os.path.isdir(apply) and not os.path.lexists(os.path.join(apply, "applying"))


def misnamed(judgement: Judgement, trailers: Trailers) -> tuple[Violation, ...]:
    """A Shapeup-Operation that is not the named order's."""
    contract = contract_in(judgement.policy, trailers.order_id or "")
    if contract is None or not trailers.operation or trailers.operation == contract.operation:
        return ()
    what = f"Shapeup-Operation is {trailers.operation!r}, but {contract.order_id} is for {contract.operation or 'none'}"
    fix = "correct the trailer, or drop it: the right one is put there"
    return (Violation("TRAILER-UNKNOWN", b"", contract.order_id, what, "a trailer tells what the order says", fix),)


def order_stamps(judgement: Judgement, order_id: str | None) -> list[tuple[str, str]]:
    """The trailers that name the order."""
    if order_id is None:
        return []
    contract = contract_in(judgement.policy, order_id)
    operation = contract.operation if contract else ""
    return [(ORDER, order_id), *([(OPERATION, operation)] if operation else [])]


def stamp(path: str, stamps: list[tuple[str, str]]) -> None:
    """Put trailers into the message file. Raises GitFailed."""
    if not stamps:
        return
    words = [word for key, value in stamps for word in ("--trailer", f"{key}: {value}")]
    ran = run_git("interpret-trailers", "--in-place", "--no-divider", "--if-exists", "doNothing", *words, path)
    if ran.status:
        raise GitFailed(ran.err.decode("utf-8", "replace").strip() or "git interpret-trailers failed")


def reason_for_message() -> str:
    """The reason of an override as one printable line."""
    from hooks.override import override_reason

    text = "".join(char if char.isprintable() else "?" for char in override_reason() or "")
    return text[:200]


def read_message(path: str) -> bytes:
    """The message file, or nothing where git gave none."""
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError as error:
        raise GitFailed(f"{path} cannot be read: {error.strerror}") from None


def strip_comments(message: bytes) -> bytes:
    """The message as git will clean it, whatever its comment character is; lines that begin with # go in any case."""
    ran = run_git("stripspace", "--strip-comments", stdin=message)
    return ran.out if ran.status == 0 else message


def parse_words(message: bytes) -> bytes:
    """The message without comments and our trailers; empty where it says nothing else."""
    return b"" if is_all_trailers(message) else strip_comments(message)


def refuse_empty() -> int:
    print(
        "shapeupd: this commit is refused: its message says nothing but what shapeupd put there\n"
        "  why: a commit needs words of its own, or `git log` tells nobody what it is\n"
        "  fix: commit again with a message",
        file=sys.stderr,
    )
    return 1


def leave_note(
    call: Call, judgement: Judgement, order_id: str | None, manner: str, owner: Contract | None = None
) -> None:
    """For the later hooks of the same commit; without it that commit counts as unsigned, nothing worse."""
    about = owner or contract_in(judgement.policy, order_id or "")
    words = (order_id or "-", manner, owner.order_id if owner else "-", about.operation if about else "")
    try:
        with open(os.path.join(git_dir(), NOTE), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{call.caller} {' '.join(word or '-' for word in words)}\n")
    except OSError:
        pass


def manner_of(caller: int) -> str:
    """How prepare-commit-msg of this commit noted it."""
    try:
        with open(os.path.join(git_dir(), NOTE), encoding="utf-8", errors="replace") as file:
            words = file.readline().split()
    except OSError:
        words = []
    return words[2] if len(words) == 5 and words[0] == str(caller) else "commit"


def _guarded(hook: Callable[[Call], int]) -> Callable[[Call], int]:
    def run(call: Call) -> int:
        try:
            return hook(call)
        except (NoPolicy, GitFailed, FileNotFoundError) as error:
            return refuse_unjudged(call, error)

    return run


HOOKS: Mapping[str, Callable[[Call], int]] = {
    "pre-commit": _guarded(pre_commit),
    "pre-merge-commit": _guarded(pre_commit),
    "prepare-commit-msg": _guarded(prepare_commit_msg),
    "commit-msg": _guarded(commit_msg),
    "post-commit": lambda call: 0,  # the stub notes what passed; nothing is left to decide
    "reference-transaction": _guarded(reference_transaction),
}
