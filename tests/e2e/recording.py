"""Hooks that let the test process read the change while git waits: in the hook's own environment and folder, by our reader.

A hook writes what it sees into one pipe and waits for a word on another, so that no Python starts for each of 1,000 hooks.
"""

from __future__ import annotations

import hashlib
import os
import threading
import traceback
from pathlib import Path
from typing import NamedTuple

from hooks.changes import staged_changes
from hooks.path_change import PathChange

HOOKS = ("pre-commit", "pre-merge-commit", "prepare-commit-msg")


class Seen(NamedTuple):
    """What one hook read. `touched`: what of the index and the git folder is not as before we read; `error`: a traceback."""

    hook: str
    index_file: str
    parents: tuple[str, ...] = ()
    changes: tuple[PathChange, ...] = ()
    touched: tuple[str, ...] = ()
    error: str = ""


class Recorder:
    """Answers the hooks of any number of repositories, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._asked, self._answered = folder / "asked", folder / "answered"
        os.mkfifo(self._asked)
        os.mkfifo(self._answered)
        self._seen: list[Seen] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def install(self, hooks: Path) -> None:
        """Our hook under each name; it always lets git go on."""
        hooks.mkdir(parents=True, exist_ok=True)
        for name in HOOKS:
            text = (
                "#!/bin/sh\n"
                f"printf '%s\\0%s\\0%s' '{name}' \"$PWD\" $$ >'{self._asked}'\n"
                f"read -r word <'{self._answered}'\nexit 0\n"
            )
            (hooks / name).write_text(text)
            (hooks / name).chmod(0o755)

    def take(self) -> list[Seen]:
        """What the hooks have read since the last call."""
        seen, self._seen = self._seen, []
        return seen

    def close(self) -> None:
        """Stop answering."""
        with open(self._asked, "wb") as asked:
            asked.write(b"quit")
        self._thread.join()

    def _serve(self) -> None:
        while True:
            with open(self._asked, "rb") as asked:
                words = os.fsdecode(asked.read()).split("\0")
            if words == ["quit"]:
                return
            hook, folder, process = words
            self._seen.append(_read(hook, folder, _environment(process)))
            with open(self._answered, "wb") as answered:
                answered.write(b"go\n")


def _environment(process: str) -> dict[str, str]:
    """What git gave the hook, which costs the hook no process of its own to tell."""
    with open(f"/proc/{process}/environ", "rb") as environment:
        pairs = os.fsdecode(environment.read()).split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


def _read(hook: str, folder: str, env: dict[str, str]) -> Seen:
    index = env.get("GIT_INDEX_FILE", "")
    try:
        before = _state(folder, index)
        staged = staged_changes(env=env, repo=folder, in_pre_merge=hook == "pre-merge-commit")
        after = _state(folder, index)
    except BaseException:
        return Seen(hook, index, error=traceback.format_exc())
    touched = tuple(sorted(key for key in before | after if before.get(key) != after.get(key)))
    return Seen(hook, index, staged.parents, staged.changes, touched)


def _state(folder: str, index: str) -> dict[str, str]:
    """sha256 of the index that git names and of every index, and the names of all that lies beside each."""
    files = [os.path.join(folder, index)]
    files += [os.path.join(folder, ".git", "index")] if os.path.isdir(os.path.join(folder, ".git")) else []
    state = {}
    for file in files:
        beside = os.path.dirname(file)
        state |= {os.path.join(beside, name): "" for name in os.listdir(beside)}
        if os.path.exists(file):
            with open(file, "rb") as opened:
                state[file] = hashlib.sha256(opened.read()).hexdigest()
    return state
