"""Finds the answer sets that may speak at a gate, and bars those that are committed. Source: protocol §8.3, §1.3, rulings A1, A2, F7."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from daemon.disk import DiskTree
from daemon.exits import USAGE, Exit
from daemon.place import Place, find_place
from hooks.git import Ran, run_git, scrubbed_env
from parsers.answers import PRESETS, AnswerSet, parse_answers
from parsers.faults import render_fault
from parsers.layout import SHARED_ROOT, path_of
from parsers.tree import Unreadable
from reducers.gates import MACHINE_ANSWERS, RUN_ANSWERS, Candidate

Choose = Callable[[tuple[Candidate, ...]], Candidate | None]


def find_answers(
    place: Place, file: str | None, preset: str | None, slug: str | None, choose: Choose
) -> tuple[Candidate, AnswerSet]:
    """The candidate that `choose` takes, and its set. Raises Exit where none is there, or the chosen one may not speak."""
    found: list[tuple[Candidate, Path | None]] = []
    if file is not None:
        found.append((_given(place, file, slug), Path(os.path.abspath(file))))
    if preset is not None:
        found.append((Candidate(f"preset:{preset}", f"preset:{preset}", PRESETS[preset]), None))
    looked = [(path_of("checkout-answers"), MACHINE_ANSWERS)]
    if slug is not None:
        looked.insert(0, (path_of("gate-answers", slug), RUN_ANSWERS))
    for path, committed in looked:
        standing = _read(place.root, path, f"file:{path}", committed)
        if standing is not None:
            found.append((standing._replace(is_of_run=committed == RUN_ANSWERS), place.root / path))
    chosen = choose(tuple(candidate for candidate, _ in found))
    if chosen is None:
        there = " and no ".join(path for path, _ in looked)
        fix = "pass --preset or --file, or write one with `shapeupd gate init`"
        raise Exit(USAGE, f"no answer set: there is no {there}\n  fix: {fix}")
    if chosen.answers is None:
        raise Exit(USAGE, "\n".join((f"{chosen.source} is no answer set", *map(render_fault, chosen.faults))))
    path_behind = next(path for candidate, path in found if candidate is chosen)
    if path_behind is not None:
        bar_committed(place, path_behind)
    return chosen, chosen.answers


def _given(place: Place, file: str, slug: str | None) -> Candidate:
    """The file that the command line names; it must be there. A committed row tells the run's file from all others (F7)."""
    real = Path(os.path.realpath(file))
    candidate = _read(real.parent, real.name, f"file:{file}", MACHINE_ANSWERS) if real.name else None
    if candidate is None:
        raise Exit(
            USAGE, f"{file} does not exist\n  fix: name an answer set; `shapeupd gate init --out FILE` writes one"
        )
    is_of_run = slug is not None and real == place.root / path_of("gate-answers", slug)
    return candidate._replace(committed=RUN_ANSWERS) if is_of_run else candidate


def _read(root: Path, path: str, source: str, committed: str) -> Candidate | None:
    """The file as a candidate, readable or not; None where none is. What is no plain file is a fault, never passed over."""
    where = source.removeprefix("file:")
    try:
        data = DiskTree(root).read(path)
    except Unreadable as stop:
        return Candidate(source, committed, None, (stop.fault._replace(where=where),))
    except NotADirectoryError:
        return None
    except OSError as error:
        raise Exit(USAGE, f"{where} cannot be read: {error.strerror}") from None
    if data is None:
        return None
    answers, faults = parse_answers(data, where)
    return Candidate(source, committed, answers, faults)


def bar_committed(place: Place, path: Path) -> None:
    """Raises Exit where git knows the file, or its place is one of the committed tree: whoever writes a branch would cross gates.

    A link on the way is looked at as it is named and as it leads.
    """
    standing = path_of("checkout-answers")
    for one in dict.fromkeys((path, Path(os.path.realpath(path)))):
        if reason := _committed_reason(place, one):
            leave = "take it out of git (`git rm --cached`, then commit)"
            fix = leave if one == place.root / standing else f"keep answers in {standing}, which is never committed"
            raise Exit(
                USAGE,
                f"{path} cannot cross a gate: {reason}\n"
                "  why: an answer set that comes with a branch would let anybody who can push cross every gate\n"
                f"  fix: {fix}",
            )


def _committed_reason(place: Place, path: Path) -> str | None:
    """Why the file counts as committed; None where it does not."""
    is_inside = path.is_relative_to(place.root)
    if is_inside and [part.casefold() for part in path.relative_to(place.root).parts[:1]] == [SHARED_ROOT]:
        return f"it lies in {SHARED_ROOT}/, the committed tree"
    enclosing = place if is_inside else find_place(path.parent)  # a repository planted below ours has no say
    if enclosing.git_dir is None:
        return None
    top = enclosing.root if is_inside else path.parent
    name = os.fspath(path.relative_to(top))
    if _ask(top, "ls-files", "--error-unmatch", "--", name).status == 0:
        return "git tracks it"
    if _ask(top, "cat-file", "-e", f"HEAD:./{name}").status == 0:
        return "it is in the last commit"
    return None


def _ask(top: Path, *words: str) -> Ran:
    """What git says of one file. Raises Exit where it says nothing: then the file may be committed."""
    try:
        ran = run_git("-C", os.fspath(top), "--literal-pathspecs", *words, env=scrubbed_env())
    except OSError as error:
        raise Exit(USAGE, f"git cannot say whether the answer set is committed: {error.strerror}") from None
    if words[0] == "ls-files" and ran.status > 1:
        said = ran.err.decode("utf-8", "replace").strip()
        raise Exit(USAGE, f"git cannot say whether the answer set is committed: {said}")
    return ran
