"""The words of the gate's refusals: what was touched, whose it is, and one command that works. Pure. Source: cli §1, design §4.

Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence

from hooks.owners import owner_words
from hooks.path_change import ABSENT_MODE, PathChange
from hooks.verdict import RULES, Violation
from parsers.policy_file import Contract

# How a path is taken out of the change again, for a shell; `{path}` is where it goes.
UNSTAGE = "git restore --staged -- {path}"
UNADD = "git rm --cached -- {path}"  # before the first commit, when there is nothing to restore from
SHELVE = "git stash push -- {path}"  # after `commit -a` or `commit PATH`: the change never was in the index that stays
UNCOMMIT = "git restore --source=HEAD~1 --staged -- {path} && git commit --amend --no-edit"
RESTORE = "git restore -- {path}"  # a write in the working tree
REMOVE = "rm -- {path}"
LEAVE = "leave the file to its writer"

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/@+=,-%")
NAMED = 3  # orders or globs that a reason names


def shell_word(path: bytes, *, for_git: bool = True) -> str:
    """The path as one word of a POSIX shell, printable whatever bytes it holds; git takes it literally.

    In one line, but for a path that ends with line ends: a shell drops those from what `$(printf …)` gives.
    """
    text = path.decode("utf-8", "surrogateescape")
    if set(text) <= _PLAIN and not text.startswith("-"):
        return text
    if for_git and (any(char in text for char in "*?[\\") or text.startswith(":")):
        text = f":(literal){text}"
    if text.isprintable():
        return "'" + text.replace("'", "'\\''") + "'"
    kept = text.rstrip("\n")
    octal = "".join(
        chr(byte) if chr(byte) in _PLAIN - {"%"} else f"\\{byte:03o}"
        for byte in kept.encode("utf-8", "surrogateescape")
    )
    line_ends = f"'{text[len(kept) :]}'" if kept != text else ""
    return f"\"$(printf '{octal}')\"{line_ends}"


def undo_with(undo: str, path: bytes) -> str:
    """The command that takes the path out of the change."""
    return undo.replace("{path}", shell_word(path, for_git=undo.startswith("git ")))


def outside(change: PathChange, order_id: str | None, why: str, undo: str) -> Violation:
    what = RULES["OUTSIDE"] if order_id is None else f"{order_id} does not let this path be written"
    return Violation("OUTSIDE", change.path, order_id, what, why, undo_with(undo, change.path))


def outside_sections(change: PathChange, order_id: str, headings: Sequence[str], undo: str) -> Violation:
    what = f"{order_id} lets only a section of this file be written"
    why = f"something outside {_sections(headings)} differs"
    return Violation("OUTSIDE", change.path, order_id, what, why, undo_with(undo, change.path))


def frozen(change: PathChange, order_id: str, glob: str, heading: str | None, undo: str) -> Violation:
    what = f"{order_id} freezes {f'the section {heading!r}' if heading else 'this path'} while it is live"
    why = f"its frozen glob {glob} says so, and frozen goes before everything that is allowed"
    return Violation("FROZEN", change.path, order_id, what, why, undo_with(undo, change.path))


def collision(change: PathChange, order_id: str, glob: str, undo: str) -> Violation:
    why = f"{order_id} freezes {glob}, and names that differ in case or accents alone are one file there"
    return Violation("COLLISION", change.path, order_id, RULES["COLLISION"], why, undo_with(undo, change.path))


def disguised(change: PathChange, meant: str, undo: str) -> Violation:
    what = f"on a file system that folds case this is {meant}"
    why = "it would come past the rules for that file"
    return Violation("COLLISION", change.path, None, what, why, undo_with(undo, change.path))


def sole_writer(change: PathChange, order: Contract, kind: str | None, undo: str) -> Violation:
    what = f"{order.order_id} ({order.operation or 'no operation'}) is not the writer of this file"
    why = f"{RULES['R-19']}: {owner_words(kind)}"
    return Violation("R-19", change.path, order.order_id, what, why, undo_with(undo, change.path))


def append_only(change: PathChange, order_id: str, headings: Sequence[str], undo: str) -> Violation:
    if change.new_mode == ABSENT_MODE:
        what, why = f"{order_id} lets this file grow, not go", "it is append-only"
    elif headings:
        what = f"{order_id} lets {_sections(headings)} grow, and nothing else of this file change"
        why = "old text is gone or changed, or something was added elsewhere"
    else:
        what, why = f"{order_id} lets this file grow at its end only", "its old bytes are not the start of the new ones"
    return Violation("APPEND-ONLY", change.path, order_id, what, why, undo_with(undo, change.path))


def symlink(change: PathChange, order_id: str, target: bytes, undo: str) -> Violation:
    where = target.decode("utf-8", "backslashreplace").encode("unicode_escape").decode("ascii")
    why = f"its target is {where[:200]}, and what an order opens lies inside the repository"
    return Violation("SYMLINK", change.path, order_id, RULES["SYMLINK"], why, undo_with(undo, change.path))


def local_path(change: PathChange, undo: str) -> Violation:
    why = "the LOCAL tree is regenerable on each machine; a committed copy would be taken for the truth elsewhere"
    return Violation("R-37", change.path, None, RULES["R-37"], why, undo_with(undo, change.path))


def no_live_order() -> Violation:
    why = "the run is open, no order of it is live, and no answered one covers all of this change"
    fix = 'at a terminal: SHAPEUP_OVERRIDE="<reason>" git commit … (it is recorded); an agent waits for an order'
    return Violation("NO-LIVE-ORDER", b"", None, RULES["NO-LIVE-ORDER"], why, fix)


def unknown_order(order_id: str) -> Violation:
    what = f"no live or past order of this repository is called {order_id!r}"
    why = "a commit that names an order is held to what that order allows"
    return Violation("TRAILER-UNKNOWN", b"", None, what, why, "name an order that `shapeupd status` lists, or none")


def nearest_words(near: tuple[str, str] | None, permitting: Sequence[str]) -> str:
    """Who comes closest to owning a path that nobody owns. `near`: an order and its glob."""
    if near is not None:
        return f"{near[0]} comes closest: it may write {near[1]}"
    if not permitting:
        return "no order permits anything now"
    more = f" and {len(permitting) - NAMED} more" if len(permitting) > NAMED else ""
    return f"nothing that {', '.join(permitting[:NAMED])}{more} may write lies near it"


def tied_words(order: Contract, other: tuple[str, str] | None) -> str:
    """Why the one order that the commit names does not cover a path. `other`: an order that does, and its glob."""
    if order.superseded:
        return "a newer attempt of its scope exists, so it permits nothing any more"
    if other is not None:
        return f"the commit is tied to this order; {other[0]} may write it, by {other[1]}"
    globs = (*order.allowed, *order.shared, *order.append_only)
    if not globs:
        return "it lets nothing be written"
    more = f" and {len(globs) - NAMED} more" if len(globs) > NAMED else ""
    return f"it may write {', '.join(globs[:NAMED])}{more}"


def _sections(headings: Sequence[str]) -> str:
    return " and ".join(f"#{heading}" for heading in headings)
