"""The command line: finds the verb, imports that one module, and turns every ending into an exit status. Source: cli §1, §2, rulings J."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import NamedTuple, NoReturn, Protocol, TextIO, cast

from daemon.exits import BUG, DONE, INTERRUPTED, USAGE, WANTING, Exit
from daemon.terminal import complain, terminal_width


class Verb(NamedTuple):
    """Where a verb lives and what it does, in one line; empty: never called by people, so no help names it."""

    module: str
    help: str


class Command(Protocol):
    """What a module under daemon/commands/ offers. EXAMPLE is a command line that works as it stands."""

    HELP: str
    EXAMPLE: str

    def arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


VERBS: dict[str, Verb] = {
    "run": Verb("daemon.commands.run", "watch in the foreground; --once settles what is on disk and ends"),
    "demo": Verb("daemon.commands.demo", "a guided, real run in a temporary repository"),
    "status": Verb("daemon.commands.status", "the daemon, its runs, queue and latency"),
    "log": Verb("daemon.commands.log", "the daemon's log, rendered; -f follows it"),
    "board": Verb("daemon.commands.board", "the task board of a feature"),
    "validate": Verb("daemon.commands.validate", "judge order and result files"),
    "ingest": Verb("daemon.commands.ingest", "reduce one result now"),
    "sync": Verb("daemon.commands.sync", "wait until all that landed is settled"),
    "rebuild": Verb("daemon.commands.rebuild", "recompute the shared state; --verify only compares"),
    "layout": Verb("daemon.commands.layout", "every kind of file: where it lives, who writes it, who reads it"),
    "install": Verb("daemon.commands.install", "git hooks, ignore rule and settings file; joins what is there"),
    "uninstall": Verb("daemon.commands.uninstall", "undo exactly what install did"),
    "doctor": Verb("daemon.commands.doctor", "prove each wall: hooks fire, the watch works, limits suffice"),
    "check": Verb("daemon.commands.check", "the gate's rules over what is staged, a commit or a range"),
    "explain": Verb("daemon.commands.explain", "who may write a path, by which order and pattern"),
    "lint": Verb("daemon.commands.lint", "what stands against a run by its records"),
    "hill": Verb("daemon.commands.hill", "where each scope stands on the hill, since when and why; --svg draws it"),
    "stats": Verb(
        "daemon.commands.stats", "how past runs ended, how the ratchet did, what hooks said, which verdicts flipped"
    ),
    "t0": Verb("daemon.commands.t0", "run a scope's fixtures, score the attempt, keep or restore its tree"),
    "trust": Verb("daemon.commands.trust", "let this machine run a contract's fixtures by itself, by hash"),
    "compile": Verb("daemon.commands.compile", "compile one WorkOrder from the run's files"),
    "ship": Verb("daemon.commands.ship", "write the run's report, frozen once it is signed off"),
    "export": Verb("daemon.commands.export", "the facts as tables, for other tools"),
    "budget": Verb("daemon.commands.budget", "how much of a run's time is spent"),
    "gate": Verb("daemon.commands.gate", "answer a gate from an answer set; list, verify or init one"),
    "gate-h": Verb(
        "daemon.commands.gate_h", "what waits at GATE H: trips, what is green, what may still be dispatched"
    ),
    "hook": Verb("daemon.commands.hook", "what git calls; pre-receive for a bare repository"),
    "record": Verb("daemon.commands.record", ""),
}
DEFAULT = "run"
MANY_REPOS = frozenset({"run"})
EXAMPLE = "shapeupd --repo ~/src/checkout status --json"


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status of one command line. The one place where endings are told apart."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # no stranger's plugin runs in here, and 20 ms are saved
    words = list(sys.argv[1:] if argv is None else argv)
    repos: list[str] = []
    stdout = sys.stdout
    sys.stdout = cast(TextIO, _Output(stdout))
    try:
        status = _ended(words, repos)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _lead_nowhere(stdout)  # the reader has seen enough
        return DONE
    except _OutputLost as lost:
        _lead_nowhere(stdout)
        complain(f"shapeupd: cannot write the output: {lost}")
        return WANTING
    except Exception as bug:
        return _report_bug(bug, words, repos)
    finally:
        sys.stdout = stdout
    return status


def _ended(words: list[str], repos: list[str]) -> int:
    """The status of a command that ends by itself, early or not."""
    try:
        return _run(words, repos)
    except SystemExit as ending:  # argparse: help and usage
        return ending.code if isinstance(ending.code, int) else USAGE
    except Exit as ending:
        if ending.message:
            complain(f"shapeupd: {ending.message}")
        return ending.status


class _OutputLost(Exception):
    """What a command prints has nowhere to go: the disk is full, or the terminal is gone."""


class _Output:
    """stdout, whose own full disk is told from every other one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with _told():
            return self._stream.write(text)

    def flush(self) -> None:
        with _told():
            self._stream.flush()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EIO):
            raise _OutputLost(error.strerror) from error
        raise


def _lead_nowhere(stdout: TextIO) -> None:
    """Python would complain once more while it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())


def _run(words: list[str], repos: list[str]) -> int:
    named, rest = _split(words, repos)
    name = named or DEFAULT
    command = cast(Command, import_module(VERBS[name].module))
    parser = argparse.ArgumentParser(
        prog=f"shapeupd {name}",
        description=command.HELP,
        epilog=f"example:\n  {command.EXAMPLE}",
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--repo", action="append", default=[], metavar="DIR", help=_REPO_HELP)
    command.arguments(parser)
    args, unknown = parser.parse_known_args(rest)
    if unknown:
        (parser if named else _top_parser()).error(f"unrecognized arguments: {' '.join(unknown)}")
    repos.extend(args.repo)
    args.repo = tuple(repos)
    if len(repos) > 1 and name not in MANY_REPOS:
        parser.error("--repo may be given once")
    missing = next((repo for repo in repos if not os.path.isdir(repo)), None)
    if missing is not None:
        parser.error(f"--repo: {missing!r} is not a folder")
    return command.run(args)


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Knows its width by itself: argparse makes a formatter for every argument and would import shutil to ask for it."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_width() - 2)


_REPO_HELP = "the repository (default: the one that encloses the working directory)"


def _split(words: list[str], repos: list[str]) -> tuple[str, list[str]]:
    """The verb and its words, with each `--repo` before it moved into `repos`. An empty verb: none was given."""
    position = 0
    while position < len(words):
        word = words[position]
        if word in ("-h", "--help"):
            _top_parser().print_help()
            raise SystemExit(DONE)
        if word == "--version":
            from daemon.version import VERSION

            print(f"shapeupd {VERSION}")
            raise SystemExit(DONE)
        if word == "--repo" and position + 1 < len(words):
            repos.append(words[position + 1])
            position += 2
        elif word.startswith("--repo="):
            repos.append(word.removeprefix("--repo="))
            position += 1
        else:
            break
    rest = words[position:]
    if not rest or rest[0].startswith("-"):
        return "", rest
    if rest[0] == "help":
        return _split([*rest[1:2], "--help"], repos)
    if rest[0] not in VERBS:
        _unknown(rest[0])
    return rest[0], rest[1:]


def _unknown(name: str) -> NoReturn:
    from difflib import get_close_matches

    near = get_close_matches(name, VERBS, n=1)
    hint = f'did you mean "{near[0]}"?' if near else "see shapeupd --help"
    _top_parser().error(f'there is no command "{name}"; {hint}')


def _top_parser() -> argparse.ArgumentParser:
    """The parser that shows the top level's help; the words themselves are split by hand, so no verb is imported."""
    width = max(map(len, VERBS))
    table = "\n".join(f"  {name:<{width}}  {verb.help}" for name, verb in VERBS.items() if verb.help)
    parser = argparse.ArgumentParser(
        prog="shapeupd",
        usage="shapeupd [--repo DIR] [COMMAND …]",
        description="Watches a repository in which several AI agents build a feature, and derives the shared state.",
        epilog=f"commands (none: {DEFAULT}):\n{table}\n\nexample:\n  {EXAMPLE}",
        formatter_class=_HelpFormatter,
    )
    parser.add_argument("--repo", action="append", metavar="DIR", help=_REPO_HELP)
    parser.add_argument("--version", action="store_true", help="print the version")
    return parser


def _report_bug(bug: Exception, words: list[str], repos: list[str]) -> int:
    """Writes the report and names the file that holds it; the terminal never sees a traceback."""
    from pathlib import Path

    from daemon.bug_report import write_report

    start = Path(repos[-1]) if repos else None
    complain(f"shapeupd: this is a bug ({type(bug).__name__}); the report is in {write_report(bug, words, start)}")
    return BUG
