"""The `.shapeupd.toml` that install writes where there is none: every key with its default, as comments. Source: cli §5."""

from __future__ import annotations

import json

from parsers.settings import KEYS, Settings

_SAYS = {
    "ingest.attestation": "off, warn, auto (required where a run has dispatch receipts) or require",
    "gate.strict": "also install reference-transaction: every ref update is judged",
    "gate.require_trailer": 'refs on which each commit names its order, such as "refs/heads/shapeup/**"',
    "gate.no_live_order": "deny: in an open run a commit needs a live order",
    "gate.tier_direction": "warn: for trees that predate the rule",
    "gate.human_globs": "paths that people may always commit",
    "gate.accept_overrides": "a server lets commits with a Shapeup-Override trailer pass",
    "breakers.silence_min": "minutes without a landed fact before a warning; 0: off",
    "t0.timeout_s": "seconds for one fixture command",
    "board.write_index": "keep the derived board index on disk",
    "hill.write": "keep the derived hill views on disk",
    "log.level": "error, warn, info or debug",
    "log.max_mb": "size of one log file",
    "log.keep": "how many rotated files stay",
    "watch.rescan_s": "seconds between two rescans",
    "watch.poll": "auto polls only where events do not arrive; on; off",
}
_HEAD = """\
# shapeupd: what this team has agreed on. Every line below is the default; take the # away to change one.
# What a machine executes is not set here but in $XDG_CONFIG_HOME/shapeupd/config.toml.
"""


def render_template() -> bytes:
    """The file. As it stands it sets nothing."""
    defaults = Settings()
    text = [_HEAD]
    section = ""
    for key, kind in KEYS.items():
        if kind.user_only:
            continue
        table, _, name = key.partition(".")
        if table != section:
            text.append(f"\n[{table}]\n")
            section = table
        says = f"  # {_SAYS[key]}" if key in _SAYS else ""
        text.append(f"# {name} = {_toml(getattr(defaults, key.replace('.', '_', 1)))}{says}\n")
        if key == "rules.profile":
            text.append('# R-28 = "deny"  # one rule by its id: off, warn or deny\n')
    return "".join(text).encode()


def _toml(value: object) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)
