"""Where a hook's own failure is put down, for whoever repairs it. Source: cli §1 (70)."""

from __future__ import annotations

import os
import sys

NAME = "shapeupd-bug.txt"


def write_bug_note(error: Exception) -> str:
    """Writes the report beside the index; its path. Raises OSError where git's folder is not at hand."""
    import traceback

    git_dir = os.environ.get("GIT_DIR") or ".git"
    path = os.path.join(git_dir, NAME)
    text = "".join(traceback.format_exception(error))
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"{sys.argv}\n{sys.version}\n\n{text}")
    return os.path.abspath(path)
