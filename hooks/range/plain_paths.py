"""Paths that one policy lets through beyond doubt, told from the path alone: most commits of a range need no more. Source: targets 20.

It says yes or nothing; what it is silent on goes to hooks/policy.py, which alone refuses. Light module: standard library only.
"""

from __future__ import annotations

from hooks.path_change import PathChange
from parsers.globs import Matcher, matcher_of
from parsers.layout import LOCAL_ROOT, SHARED_ROOT
from parsers.policy_file import Policy

_FILE_MODES = ("100644", "100755")
_OURS = (LOCAL_ROOT, SHARED_ROOT)


class PlainPaths:
    """What a policy of one order, or of none, permits whatever the files hold."""

    def __init__(self, policy: Policy) -> None:
        self._is_open = not policy.contracts and policy.no_live_order == "allow"
        self._globs: tuple[Matcher, ...] = ()
        if len(policy.contracts) == 1 and policy.contracts[0].permits:
            order = policy.contracts[0]
            if all(glob.startswith(tuple(f"{root}/" for root in _OURS)) for glob in order.frozen):
                self._globs = tuple(matcher_of(glob) for glob in (*order.allowed, *order.shared) if "#" not in glob)
        self._known: dict[bytes, bool] = {}

    def permit(self, change: PathChange) -> bool:
        """Whether the change is allowed beyond doubt."""
        if change.new_mode not in _FILE_MODES and not self._is_open:
            return False
        known = self._known.get(change.path)
        if known is None:
            known = self._known[change.path] = self._permit(change.path)
        return known

    def _permit(self, path: bytes) -> bool:
        """No rule speaks of a path outside the two trees whose name no file system folds into them, but those of its order."""
        if not path.isascii() or path.split(b"/", 1)[0].decode("ascii").lower() in _OURS:
            return False
        name = path.decode("ascii")
        return self._is_open or any(matches(name) for matches in self._globs)
