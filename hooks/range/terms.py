"""The settings that govern a pushed ref, as they are committed. Source: rulings A3, E11, cli §5.

Light module: standard library only; TOML is read where a file says something that counts here.
"""

from __future__ import annotations

from hooks.objects import Objects
from hooks.range.judge import Terms
from parsers.globs import matches
from parsers.layout import path_of
from parsers.policy_file import Policy

_COUNTS = (b"require_trailer", b"human_globs", b"tier_direction", b"accept_overrides", b"\\")  # an escape may spell one


_DEFAULT = Terms()


class _Rules:
    """What one settings file says, and the refs on which it asks for a trailer."""

    def __init__(self, terms: Terms = _DEFAULT, require_trailer: tuple[str, ...] = ()) -> None:
        self.terms, self.require_trailer = terms, require_trailer


class CommittedTerms:
    """Terms by committed settings alone: those of the ref's old tip; where it has none, those of the first of `defaults` that
    has some, on a server the default branch. In CI there is no default: HEAD may be the very commits that are judged."""

    def __init__(self, objects: Objects, defaults: tuple[str, ...] = ("HEAD",)) -> None:
        self._objects, self._defaults = objects, defaults
        self._rules: dict[str, _Rules | None] = {}
        self._faults: dict[str, None] = {}

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong in the settings that were read, one line each."""
        return tuple(self._faults)

    def terms_for(self, ref: str, old: str, policy: Policy | None = None) -> Terms:
        """What commits that come to the ref are held to; `old` is its tip before, empty for a new one. `policy`: this machine's,
        which knows the user's own settings too."""
        rules = next((found for at in (old, *self._defaults) if at and (found := self._read(at))), _Rules())
        needs = any(matches(pattern, ref) for pattern in rules.require_trailer)
        terms = rules.terms._replace(needs_trailer=needs)
        if policy is None:
            return terms
        return terms._replace(human_globs=policy.human_globs, tier_direction=policy.tier_direction)

    def _read(self, commit: str) -> _Rules | None:
        """The settings in a commit; None where it holds none that can be read as a whole."""
        if commit not in self._rules:
            data = self._objects.blob(f"{commit}:{path_of('settings')}")
            self._rules[commit] = None if data is None else self._parse(data)
        return self._rules[commit]

    def _parse(self, data: bytes) -> _Rules | None:
        if not any(word in data for word in _COUNTS):
            return _Rules()
        from parsers.settings import parse_settings

        settings, faults = parse_settings(data.decode("utf-8", "replace"), None, None, "")
        for fault in faults:
            self._faults[f"{fault.where}: {fault.what}; {fault.fix}"] = None
        if any("not TOML" in fault.what for fault in faults):
            return None
        terms = Terms(settings.gate_human_globs, settings.gate_tier_direction, settings.gate_accept_overrides)
        return _Rules(terms, settings.gate_require_trailer)
