"""Reads the three settings files of a repository. Source: cli §5, ruling A2."""

from __future__ import annotations

import os
from pathlib import Path

from daemon.exits import USAGE, Exit
from daemon.place import Place
from parsers.faults import Fault, render_fault
from parsers.layout import path_of
from parsers.settings import Settings, parse_settings


def load_settings(place: Place) -> tuple[Settings, tuple[Fault, ...]]:
    """The settings in force, and what is wrong with the machine-local file, which agents can write: that only warns.

    Raises Exit where the team's or the user's own file is wrong: a rule that someone relies on would silently not hold.
    """
    local = path_of("local-settings")
    committed = _text(place.root / path_of("settings"))
    settings, faults = parse_settings(committed, _text(place.root / local), user_settings_text(), os.fspath(place.root))
    serious = [fault for fault in faults if not fault.where.startswith(local)]
    if serious:
        raise Exit(USAGE, "\n".join(map(render_fault, serious)))
    if settings.ingest_reducer == "observe":
        raise Exit(
            USAGE, 'ingest.reducer = "observe" is not built yet; remove the line, or run `shapeupd` where it may apply'
        )
    return settings, tuple(faults)


def user_settings_text() -> str | None:
    """The text of the user's own settings file; None where there is none."""
    return _text(_user_file())


def _user_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base) / "shapeupd" / "config.toml"


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
