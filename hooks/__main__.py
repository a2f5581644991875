"""What a hook's stub asks where the shell cannot decide: `python -I -S hooks/__main__.py HOOK [--root R] [--caller PID] -- ARGS`.

Source: design §4, targets 22. Nothing is imported at the top: only what the named hook needs is paid for.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    """The exit status of one hook: 0 lets git go on. Whatever goes wrong refuses, in words."""
    try:
        from hooks.entry import run_hook

        return run_hook(argv)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1
    except Exception as error:
        return _refuse_for(error)


def _refuse_for(error: Exception) -> int:
    """A bug, or a world so broken that its own check broke: the report goes to a file, the terminal gets three lines."""
    try:
        from hooks.bug_note import write_bug_note

        where = write_bug_note(error)
    except Exception:
        where = ""
    report = f"report {where}" if where else "report this"
    print(
        f"shapeupd: this is refused: the gate itself failed ({type(error).__name__})\n"
        "  why: a change that could not be judged may leave what the live orders allow\n"
        f"  fix: run `shapeupd doctor`; if that finds nothing, {report}",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    import gc
    import os

    gc.disable()  # a process of some milliseconds has nothing to collect
    sys.path.append(__file__.rpartition("/hooks/")[0])
    from hooks.light_typing import stand_in

    stand_in()
    status = main(sys.argv[1:])
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)  # what Python would tidy up goes with the process
