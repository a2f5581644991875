"""`.shapeup/policy.paths`: the part of a policy that a POSIX shell can judge by. Pure. Source: design §4, ruling E10, targets 18-19.

The first line is `shapeupd-policy 1 <mode> <count> <orders_digest>`, `<count>` the number of lines after it. Then one group
for each order that permits, headed `@<order_id> <operation or ->` (`@<order_id> answered <operation or ->` once it is answered),
and the group `@ -` of what people may always write:

    +<pattern>   covers a path that `case "+$path" in $line)` matches: `*` and `?` cross slashes, as in a shell
    -<pattern>   covers one that `case "-$path" in $line)` matches and that holds as many slashes as the pattern

The last line is `.`. Modes: `open` (no live order narrows anything: without SHAPEUP_ORDER every path outside the two trees
passes), `union` (a path passes that a line covers), `closed` (a live order is required and none is there: Python decides).

A line covers exactly what its glob matches among the paths that git can hold. A glob that cannot be said so has no line,
nor has one that may meet a frozen glob. What a shell that reads these lines sends to Python: what no line covers, symlinks,
`.shapeup` and all below it and below `shapeup/` in whatever case, and every path that git quotes (`core.quotePath` on). What
is left and covered is nothing that hooks/policy.py refuses.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from hooks.policy import requires_live_order, split_section
from parsers.addresses import ORDER_ID
from parsers.globs import folded, is_wild, literal_prefix, may_meet, tokens_of
from parsers.layout import LOCAL_ROOT, SHARED_ROOT, path_of
from parsers.policy_file import Policy

HEADER = "shapeupd-policy 1"
END = "."
_SAYABLE = re.compile(r"[A-Za-z0-9._/@+=,~*? -]+\Z")
_WORD = re.compile(r"[a-z0-9-]+\Z")
_TREES = (f"{LOCAL_ROOT}/", f"{SHARED_ROOT}/")
_MAX_SPLITS = 3  # `**/` in the middle of a glob doubles its patterns
_ANY = "**"

_SETTINGS = path_of("settings")  # no order opens them (E4)


def render_shell_policy(policy: Policy) -> str:
    """The whole file."""
    mode = "closed" if requires_live_order(policy) else "union" if policy.is_constraining else "open"
    lines = [] if mode == "closed" else [*_groups(policy), END]
    lines = lines or [END]
    return "\n".join((f"{HEADER} {mode} {len(lines)} {policy.orders_digest or '-'}", *lines, ""))


def _groups(policy: Policy) -> Iterator[str]:
    frozen = _Freezes(glob for order in policy.contracts if order.freezes for glob in order.frozen)
    for order in policy.contracts:
        if order.permits and ORDER_ID.match(order.order_id):
            state = " answered" if order.answered else ""
            yield f"@{order.order_id}{state} {order.operation if _WORD.match(order.operation) else '-'}"
            own = frozen if order.freezes else _Freezes(order.frozen)
            globs = (glob for glob in (*order.allowed, *order.shared) if not frozen.may_meet(glob))
            yield from _lines(glob for glob in globs if not own.may_meet(glob))
    yield "@ -"
    yield from _lines(policy.human_globs)


def _lines(globs: Iterable[str]) -> Iterator[str]:
    said = (pattern for glob in globs if not glob.startswith(_TREES) for pattern in shell_patterns(glob))
    yield from dict.fromkeys(said)


class _Freezes:
    """Frozen globs and the settings, folded, found by how they begin."""

    def __init__(self, globs: Iterable[str]) -> None:
        paths = {path for glob in globs for path in (glob, split_section(glob)[0])} | {_SETTINGS}
        self._by_prefix: dict[str, list[str]] = {}
        for form in {form for path in paths for form in folded(path)}:
            self._by_prefix.setdefault(literal_prefix(form), []).append(form)
        self._prefixes = sorted(self._by_prefix)
        self._known: dict[str, bool] = {}

    def may_meet(self, glob: str) -> bool:
        """Whether a path that the glob matches may be frozen, or be taken for a frozen one where case is folded."""
        if glob not in self._known:
            near = self._near(literal_prefix(glob.lower()))
            self._known[glob] = any(may_meet(glob.lower(), frozen, is_loose=True) for frozen in near)
        return self._known[glob]

    def _near(self, prefix: str) -> Iterator[str]:
        """Those whose beginning is the beginning of the prefix, or begins with it."""
        for end in range(len(prefix)):
            yield from self._by_prefix.get(prefix[:end], ())
        at = bisect_left(self._prefixes, prefix)
        while at < len(self._prefixes) and self._prefixes[at].startswith(prefix):
            yield from self._by_prefix[self._prefixes[at]]
            at += 1


def shell_patterns(glob: str) -> tuple[str, ...]:
    """The lines that together cover exactly what the glob matches among clean paths: no empty segment, no newline, no
    slash at an end. Empty where no lines say that."""
    if not _SAYABLE.match(glob) or glob != glob.strip():
        return ()
    lines = [_line(tokens) for tokens in _split(_simple(tokens_of(glob)))]
    return tuple(line for line in lines if line) if all(lines) else ()


def _simple(tokens: tuple[str, ...]) -> list[str]:
    """The tokens with wildcards that stand side by side made one, where that matches the same clean paths."""
    simple: list[str] = []
    for token in tokens:
        last = simple[-1] if simple else ""
        if (last, token) in (("**/", "**/"), (_ANY, "**/"), (_ANY, "*")):
            continue
        is_any = (last, token) in (("*", _ANY), ("**/", _ANY)) or (
            (last, token) == ("**/", "*") and _starts_segment(simple[:-1])
        )
        simple[-1 if is_any else len(simple) :] = [_ANY if is_any else token]
    return simple


def _starts_segment(before: list[str]) -> bool:
    """Whether what follows stands at the beginning of a path segment."""
    return not before or before[-1].endswith("/")


def _split(tokens: list[str]) -> list[list[str]]:
    """`**/` at the beginning of a segment stands for nothing, or for anything and a slash; empty where one stands elsewhere."""
    found: list[list[str]] = [[]]
    for at, token in enumerate(tokens):
        if token != "**/":
            found = [_joined(said, token) for said in found]
        elif not _starts_segment(tokens[:at]) or len(found) >= 1 << _MAX_SPLITS:
            return []
        else:
            found += [_joined(_joined(said, _ANY), "/") for said in found]
    return found


def _joined(said: list[str], token: str) -> list[str]:
    """The tokens and one more; literal text runs together."""
    if said and not is_wild(token) and not is_wild(said[-1]):
        return [*said[:-1], said[-1] + token]
    return [*said, token]


def _line(tokens: list[str]) -> str | None:
    """The line that covers what the tokens match; None where a shell would match more."""
    if _ANY not in tokens:
        text = "".join(tokens)
        return f"-{text}" if any(map(is_wild, tokens)) else f"+{text}"
    while (
        spot := next((at for at in range(len(tokens)) if tokens[at : at + 3] in _SLASH_SOMEWHERE), None)
    ) is not None:
        tokens = [*tokens[:spot], _ANY, "/", _ANY, *tokens[spot + 3 :]]
    if "*" in tokens or "?" in tokens:
        return None
    return "+" + "".join("*" if token == _ANY else token for token in tokens)


# Both say that there is a slash somewhere, and so does `**`, slash, `**`.
_SLASH_SOMEWHERE = (["*", "/", _ANY], [_ANY, "/", "*"])
