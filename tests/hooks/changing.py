"""Changes and their content in memory, for tests of the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hooks.path_change import ABSENT_MODE, GITLINK_MODE, SYMLINK_MODE, Content, PathChange
from hooks.policy import judge
from hooks.specs import SpecVerdict
from hooks.verdict import Violation
from parsers.policy_file import Contract, Policy

FILE, EXECUTABLE = "100644", "100755"
__all__ = [
    "ABSENT_MODE",
    "EXECUTABLE",
    "FILE",
    "GITLINK_MODE",
    "SYMLINK_MODE",
    "Sides",
    "change",
    "judged",
    "order",
    "policy",
    "rules",
]


class Sides(NamedTuple):
    """The bytes on both sides by path; a path that is absent has none."""

    old: Mapping[bytes, bytes] = {}
    new: Mapping[bytes, bytes] = {}

    def before(self, change: PathChange) -> bytes | None:
        return self.old.get(change.path)

    def after(self, change: PathChange) -> bytes | None:
        return self.new.get(change.path)


class Untouchable:
    """A content that no rule may ask for."""

    def before(self, change: PathChange) -> bytes | None:
        raise AssertionError(f"read {change}")

    def after(self, change: PathChange) -> bytes | None:
        raise AssertionError(f"read {change}")


def change(path: str | bytes, status: str = "M", *, old: str = FILE, new: str = FILE) -> PathChange:
    raw = path if isinstance(path, bytes) else path.encode("utf-8", "surrogateescape")
    old, new = {"A": (ABSENT_MODE, new), "D": (old, ABSENT_MODE)}.get(status, (old, new))
    return PathChange(status, raw, old, new, "a" * 40, "b" * 40)


def order(order_id: str = "cart/core-r1-a1", operation: str = "execute", **lists: tuple[str, ...] | bool) -> Contract:
    return Contract(order_id, operation, **lists)  # type: ignore[arg-type]


def policy(*contracts: Contract, **settings: object) -> Policy:
    return Policy("digest", contracts, **settings)  # type: ignore[arg-type]


def no_specs(changes: Sequence[PathChange], content: Content, policy: Policy) -> SpecVerdict:
    return SpecVerdict()


def judged(
    of: Policy, *changes: str | PathChange, content: Content | None = None, **named: object
) -> tuple[Violation, ...]:
    """The verdict; a bare path is a changed file. Unless a test brings them, no rules over specs take part."""
    named.setdefault("specs", no_specs)
    made = [change(item) if isinstance(item, str) else item for item in changes]
    return judge(made, of, Untouchable() if content is None else content, **named)  # type: ignore[arg-type]


def rules(violations: Sequence[Violation]) -> list[str]:
    return [violation.rule for violation in violations]
