"""The settings of three files as one frozen value; unknown keys and loosened rules are refused. Source: cli §5, rulings A2, A5.

`.shapeupd.toml` is the team's. `.shapeup/shapeupd.toml` lies where agents write, so it may only tighten. The user's own
file may set anything that the team left open, may only tighten an enforcement key that the team has set, and alone may
name what is executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from parsers.faults import Fault
from parsers.layout import path_of
from parsers.rule_table import RULES, Severity

USER_FILE = "$XDG_CONFIG_HOME/shapeupd/config.toml"
ENFORCEMENT = ("gate.", "rules.", "ingest.", "breakers.")

RuleLevel = Literal["off", "warn", "deny"]
_STRICTNESS: tuple[RuleLevel, ...] = ("off", "warn", "deny")


class Settings(NamedTuple):
    """Every setting; a field is its key with `_` for the first dot. `rules` holds single rules, in the order of their ids."""

    ingest_attestation: Literal["off", "warn", "auto", "require"] = "auto"
    ingest_reducer: Literal["observe", "apply"] = "apply"
    rules_profile: Literal["advise", "enforce"] = "advise"
    rules: tuple[tuple[str, RuleLevel], ...] = ()
    gate_strict: bool = False
    gate_require_trailer: tuple[str, ...] = ()
    gate_no_live_order: Literal["allow", "deny"] = "allow"
    gate_tier_direction: Literal["warn", "deny"] = "deny"
    gate_human_globs: tuple[str, ...] = ()
    gate_accept_overrides: bool = False  # on a server: whether a `Shapeup-Override:` trailer lets a commit pass (E8)
    gate_allow_paths: tuple[str, ...] = ()  # globs that pass on this machine, always recorded (A2)
    breakers_silence_min: float = 0  # 0: off
    breakers_notify: tuple[str, ...] = ()  # argv; empty: nobody is told
    t0_timeout_s: float = 600
    t0_auto: bool = False
    board_write_index: bool = True
    hill_write: bool = True
    log_level: Literal["error", "warn", "info", "debug"] = "info"
    log_max_mb: float = 20
    log_keep: int = 5
    watch_rescan_s: float = 2
    watch_poll: Literal["auto", "on", "off"] = "auto"
    advisor_profile: Literal["", "3.0.1-strict"] = ""
    grants_files: tuple[str, ...] = ()
    release_version_pairs: tuple[tuple[str, str], ...] = ()
    funding_impl_model: str = ""  # empty: no model is named

    def rule(self, rule_id: str, severity: Severity | None = None) -> RuleLevel:
        """How a finding of the rule acts. Of an integrity rule as the table says, or as the setting tightens it; of a process
        rule by its own setting, else its `deny` under `enforce` alone. `severity` None: the table's. Source: protocol §9.
        """
        known = RULES.get(rule_id)
        own = dict(self.rules).get(rule_id)
        inherent: RuleLevel = "deny" if (severity or (known.severity if known else "deny")) == "deny" else "warn"
        if known is not None and known.family == "integrity":
            return max(own or "off", inherent, key=_STRICTNESS.index)
        return own or (inherent if self.rules_profile == "enforce" else "warn")


class Refused(Exception):
    """A value outside what its key takes; the text says what it takes."""


Read = Callable[[object], object]
Looser = Callable[[Any, Any], bool]


class Key(NamedTuple):
    """One key: how a TOML value becomes a setting, when one value is looser than another, and who may write it.

    `is_looser` None means that no value is looser: the key only tunes. `user_only` is the L of cli §5.
    """

    read: Read
    is_looser: Looser | None = None
    user_only: bool = False


def _choice(*loose_to_strict: str, ranked: bool = True) -> Key:
    def read(value: object) -> object:
        if value not in loose_to_strict:
            raise Refused("one of " + ", ".join(f'"{word}"' for word in loose_to_strict))
        return value

    def is_looser(value: str, floor: str) -> bool:
        return loose_to_strict.index(value) < loose_to_strict.index(floor)

    return Key(read, is_looser if ranked else None)


def _flag(value: object) -> object:
    if not isinstance(value, bool):
        raise Refused("true or false")
    return value


def _number(low: float, high: float, *, whole: bool = False) -> Read:
    def read(value: object) -> object:
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
            raise Refused(f"a {'whole ' if whole else ''}number from {low:g} to {high:g}")
        return value

    return read


def _texts(value: object) -> object:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise Refused("a list of texts")
    return tuple(value)


def _pairs(value: object) -> object:
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise Refused("a list of pairs of texts")
    return tuple(_texts(pair) for pair in value)


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise Refused("a text")
    return value


def _is_less(value: float, floor: float) -> bool:
    return value < floor


def _is_more(value: float, floor: float) -> bool:
    return value > floor


def _lacks_some(value: tuple[str, ...], floor: tuple[str, ...]) -> bool:
    return not set(floor) <= set(value)


def _adds_some(value: tuple[str, ...], floor: tuple[str, ...]) -> bool:
    return not set(value) <= set(floor)


def _warns_later(value: float, floor: float) -> bool:
    """Silence is reported later, or (0) never."""
    return (value or float("inf")) > (floor or float("inf"))


_DAY_S = 86400
_LEVELS = _choice("off", "warn", "deny")
_RULE = re.compile(r"rules\.(R-\d{2,3})\Z")

KEYS: dict[str, Key] = {
    "ingest.attestation": _choice("off", "warn", "auto", "require"),
    "ingest.reducer": _choice("observe", "apply"),
    "rules.profile": _choice("advise", "enforce"),
    "gate.strict": Key(_flag, _is_less),
    "gate.require_trailer": Key(_texts, _lacks_some),
    "gate.no_live_order": _choice("allow", "deny"),
    "gate.tier_direction": _choice("warn", "deny"),
    "gate.human_globs": Key(_texts, _adds_some),
    "gate.accept_overrides": Key(_flag, _is_more),
    "gate.allow_paths": Key(_texts, user_only=True),
    "breakers.silence_min": Key(_number(0, 7 * 24 * 60), _warns_later),
    "breakers.notify": Key(_texts, user_only=True),
    "t0.timeout_s": Key(_number(1, _DAY_S)),
    "t0.auto": Key(_flag, user_only=True),
    "board.write_index": Key(_flag, _is_less),
    "hill.write": Key(_flag, _is_less),
    "log.level": _choice("error", "warn", "info", "debug"),
    "log.max_mb": Key(_number(1, 1000), _is_less),
    "log.keep": Key(_number(0, 100, whole=True), _is_less),
    "watch.rescan_s": Key(_number(0.1, 60), _is_more),
    "watch.poll": _choice("auto", "on", "off", ranked=False),
    "advisor.profile": _choice("", "3.0.1-strict"),
    "grants.files": Key(_texts, _adds_some),
    "release.version_pairs": Key(_pairs, _lacks_some),
    "funding.impl_model": Key(_text),
}


class _Given(NamedTuple):
    """One value as a file gives it, and where."""

    key: str
    value: object
    where: str


def parse_settings(
    committed: str | None, local: str | None, user: str | None, repo: str
) -> tuple[Settings, tuple[Fault, ...]]:
    """The settings in force for the repository at the path `repo`, and what was refused; None is an absent file.

    A refused value is left out, so what stays is the stricter one.
    """
    faults: list[Fault] = []
    team = _values(committed, path_of("settings"), None, faults)
    own = _values(user, USER_FILE, repo.rstrip("/") or "/", faults)
    machine = _values(local, path_of("local-settings"), None, faults)
    chosen: dict[str, Any] = {}
    for given in team:
        _take(given, chosen, faults, is_user=False, floor=None)
    decided = dict(chosen)
    for given in own:
        guarded = given.key.startswith(ENFORCEMENT) and given.key in decided
        _take(given, chosen, faults, is_user=True, floor=decided if guarded else None)
    floor = dict(chosen)
    for given in machine:
        _take(given, chosen, faults, is_user=False, floor=floor)
    return _settings(chosen), tuple(faults)


def _settings(chosen: Mapping[str, Any]) -> Settings:
    rules = tuple(sorted((found[1], level) for key, level in chosen.items() if (found := _RULE.match(key))))
    plain = {key.replace(".", "_", 1): value for key, value in chosen.items() if key in KEYS}
    return Settings(**plain, rules=rules)


def _take(
    given: _Given, chosen: dict[str, Any], faults: list[Fault], *, is_user: bool, floor: Mapping[str, Any] | None
) -> None:
    """Puts the value into `chosen`, or a fault into `faults`. `floor` None: any value in range will do."""
    key = _LEVELS if _RULE.match(given.key) else KEYS[given.key]
    if key.user_only and not is_user:
        faults.append(_only_user(given))
        return
    try:
        value = key.read(given.value)
    except Refused as expected:
        faults.append(_out_of_range(given, str(expected)))
        return
    level = _held_at(given.key)
    if level is not None and key.is_looser is not None and key.is_looser(value, level):
        faults.append(_always_holds(given, level))
        return
    if floor is not None and key.is_looser is not None and key.is_looser(value, _in_force(given.key, floor)):
        faults.append(_loosens(given, _in_force(given.key, floor)))
        return
    chosen[given.key] = value


def _held_at(key: str) -> RuleLevel | None:
    """The level below which no file brings an integrity rule; None for every other key."""
    rule = _RULE.match(key)
    return Settings().rule(rule[1]) if rule and RULES[rule[1]].family == "integrity" else None


def _in_force(key: str, chosen: Mapping[str, Any]) -> Any:
    settings = _settings(chosen)
    rule = _RULE.match(key)
    return settings.rule(rule[1]) if rule else getattr(settings, key.replace(".", "_", 1))


def _values(text: str | None, file: str, repo: str | None, faults: list[Fault]) -> list[_Given]:
    """The known keys of one file in its order; `[repo."<path>"]` of the path `repo` behind them, where tables may stand."""
    if not text:
        return []
    import tomllib  # 13 ms, and most repositories have no settings file

    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        faults.append(_not_toml(file, str(error)))
        return []
    tables = document.pop("repo", None) if repo is not None else None
    found = list(_flat(document, text, file))
    if isinstance(tables, dict):
        for path, table in tables.items():
            if isinstance(table, dict) and (path.rstrip("/") or "/") == repo:
                found.extend(_flat(table, text, file))
    known = []
    for given in found:
        rule = _RULE.match(given.key)
        if given.key in KEYS or (rule and rule[1] in RULES):
            known.append(given)
        else:
            faults.append(_unknown(given))
    return known


def _flat(document: Mapping[str, object], text: str, file: str) -> Iterator[_Given]:
    for section, table in document.items():
        if not isinstance(table, dict):
            # A quoted "gate.strict" at the top is one name with a dot in it, not the key.
            yield _Given(f"'{section}'" if "." in section else section, table, _line(section, text, file))
            continue
        for name, value in table.items():
            yield _Given(f"{section}.{name}", value, _line(name, text, file))


def _line(name: str, text: str, file: str) -> str:
    """`file:line` of the first line that assigns the name; the file alone where none is found."""
    assigned = re.compile(rf"""[\w.\s"'-]*?\b{re.escape(name)}["']?\s*=""")
    for number, line in enumerate(text.splitlines(), 1):
        if assigned.match(line):
            return f"{file}:{number}"
    return file


def _unknown(given: _Given) -> Fault:
    from difflib import get_close_matches  # only where something is wrong

    if _RULE.match(given.key):
        fix = f"remove the line; the rules are {min(RULES)} to {max(RULES)}"
        return _fault(given.where, f'there is no rule "{given.key}"', "it would silently hold nothing", fix)
    near = get_close_matches(given.key, [*KEYS, "rules.R-01"], n=1, cutoff=0.5)
    section = given.key.partition(".")[0]
    known = [key for key in KEYS if key.startswith(f"{section}.")] or sorted({key.partition(".")[0] for key in KEYS})
    fix = f'write "{near[0]}" or remove the line' if near else f"remove the line; known are {', '.join(known)}"
    return _fault(given.where, f'there is no setting "{given.key}"', "a misspelt rule would silently not hold", fix)


def _out_of_range(given: _Given, expected: str) -> Fault:
    what = f'"{given.key}" is {_shown(given.value)}'
    return _fault(given.where, what, f"it takes {expected}", "correct the value or remove the line for the default")


def _loosens(given: _Given, floor: object) -> Fault:
    what = f'"{given.key}" is {_shown(given.value)}, looser than {_shown(floor)}'
    why = "this file may only tighten what stands above it"
    return _fault(given.where, what, why, f"remove the line, or change {path_of('settings')} in a commit")


def _always_holds(given: _Given, level: RuleLevel) -> Fault:
    what = f'"{given.key}" is {_shown(given.value)}, looser than {_shown(level)}'
    why = "an integrity rule holds always; a setting may only tighten it"
    return _fault(given.where, what, why, "remove the line")


def _only_user(given: _Given) -> Fault:
    why = "nothing that a branch or an agent can write makes the daemon execute anything"
    return _fault(given.where, f'"{given.key}" may not be set here', why, f"move the line to {USER_FILE}")


def _not_toml(file: str, error: str) -> Fault:
    line = re.search(r"at line (\d+)", error)
    where = f"{file}:{line[1]}" if line else file
    return _fault(where, f"not TOML: {error}", "none of the file's settings holds", "correct the line")


def _shown(value: object) -> str:
    text = repr(list(value)) if isinstance(value, tuple) else repr(value)
    return text.replace("True", "true").replace("False", "false").replace("'", '"')[:80]


def _fault(where: str, what: str, why: str, fix: str) -> Fault:
    return Fault("E-SETTINGS", where, what, why, fix)
