"""Reads a hook's command line and hands it to the module that knows the hook. Source: design §4, cli §2 `hook`.

Light module: standard library only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

READS_STDIN = ("pre-push", "pre-receive", "reference-transaction")


class Call(NamedTuple):
    """One run of one hook. `root` is the main worktree's top; `caller` the git process that runs it.

    `raw`: the lines of `git diff-index --cached --raw HEAD` as the stub has just read them, no path of them quoted; empty: it
    has not.
    """

    hook: str
    root: str
    caller: int
    args: tuple[str, ...]
    stdin: bytes = b""
    raw: bytes = b""


def run_hook(argv: Sequence[str]) -> int:
    """The exit status of `HOOK [--root R] [--caller PID] [--raw LINES] [--] ARGS…`; without a root git is asked for it."""
    hook, options, args = _parse(argv)
    stdin = sys.stdin.buffer.read() if hook in READS_STDIN else b""
    if hook == "pre-receive":
        from hooks.server import pre_receive

        return pre_receive(stdin)
    root = os.path.realpath(options["--root"]) if options["--root"] else main_worktree()
    if hook == "pre-push":
        from hooks.pushes import pre_push

        return pre_push(root, args, stdin)
    from hooks.commit_hooks import HOOKS

    if hook not in HOOKS:
        print(f"shapeupd: {hook!r} is no hook that shapeupd knows; it knows {', '.join(HOOKS)}", file=sys.stderr)
        return 2
    caller = options["--caller"]
    raw = os.fsencode(options["--raw"])
    return HOOKS[hook](Call(hook, root, int(caller) if caller.isdecimal() else os.getppid(), args, stdin, raw))


def _parse(argv: Sequence[str]) -> tuple[str, dict[str, str], tuple[str, ...]]:
    words = list(argv)
    hook = words.pop(0) if words else ""
    found = {"--root": "", "--caller": "", "--raw": ""}
    while len(words) > 1 and words[0] in found:
        found[words[0]] = words[1]
        del words[:2]
    if words[:1] == ["--"]:
        del words[0]
    return hook, found, tuple(words)


def main_worktree() -> str:
    """The top of the main worktree, where the local tree lies (A1). Raises GitFailed outside a repository."""
    from hooks.git import ask_git

    common = os.fsdecode(ask_git("rev-parse", "--git-common-dir")).removesuffix("\n")
    return os.path.dirname(os.path.realpath(common))
