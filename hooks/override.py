"""When a refusal does not hold: a person at a terminal says why, or lets a path pass on this machine for good. Source: rulings A2, E8.

Light module: standard library only.
"""

from __future__ import annotations

import os

VARIABLE = "SHAPEUP_OVERRIDE"
HOW = f'a person at a terminal may override this: {VARIABLE}="<reason>" git commit … (it is recorded)'
NO_TERMINAL = f"{VARIABLE} is set, but only a person at a terminal may override: this is run without one"


def override_reason() -> str | None:
    """The reason given, in one line; None where none is."""
    return " ".join(os.environ.get(VARIABLE, "").split()) or None


def has_terminal() -> bool:
    """Whether a person sits here: there is a terminal, and what we say goes to it."""
    if not os.isatty(2):
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def allow_paths(root: str) -> tuple[str, ...]:
    """`gate.allow_paths` of the user's own file, the only one that counts; nothing where it cannot be read."""
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    try:
        with open(os.path.join(folder, "shapeupd", "config.toml"), encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return ()
    if "allow_paths" not in text:
        return ()
    from parsers.settings import parse_settings

    return parse_settings(None, None, text, root)[0].gate_allow_paths
