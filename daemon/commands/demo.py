"""`shapeupd demo`: a guided, real run in a temporary repository. Source: cli §2."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from daemon.demo.stage import Failed, Stage
from daemon.demo.story import tell
from daemon.exits import DONE, WANTING
from daemon.terminal import complain

HELP = """Shows the main job in a temporary repository with a real daemon: orders and results land, the board moves, a bad
result is refused, restarts change nothing. Asks no questions; ends with 0 only if every step showed what it claims."""
EXAMPLE = "shapeupd demo --keep"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", action="store_true", help="leave the repository for you to look at")


def run(args: argparse.Namespace) -> int:
    root = Path(tempfile.mkdtemp(prefix="shapeupd-demo-")).resolve()
    stage = Stage(root)
    try:
        tell(stage)
    except Failed as failure:
        complain(f"shapeupd demo: {failure}; see {root}/.shapeup/shapeupd.log")
        args.keep = True
        return WANTING
    finally:
        stage.close()
        if not args.keep:
            shutil.rmtree(root, ignore_errors=True)
    print("\nEvery step showed what it claims." + (f" The repository is {root}" if args.keep else ""))
    return DONE
