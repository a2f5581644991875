"""Every recorded `gate` run: ours ends the same, prints the same facts and writes the same rows, or differs by a rule that the case itself
shows. Sentences are ours. Source: corpus README, protocol §8, rulings H1, F7.

All cases go through the functions, every second one through the command line as well.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from parsers.answers import GATES, PRESETS, parse_answers
from parsers.ledgers import parse_rows
from parsers.round_ledger import parse_round_ledger
from reducers.gates import (
    AUTO_LEVELS,
    MACHINE_ANSWERS,
    RUN_ANSWERS,
    Candidate,
    choose,
    crossing_of,
    gates_row,
    resolution_document,
    resolve,
    verification_document,
    verify,
)
from tests.corpus.replay_cases import CORPUS, REPOSITORY
from tests.corpus.tally import count
from tests.e2e.gate_words import gate

CASES = CORPUS / "t0" / "cases.json"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CASES.is_file(), reason=f"no gate cases below {CORPUS} (set SHAPEUP_CORPUS)"),
]

ROWS = {
    row["rule"]: row for row in tomllib.loads((REPOSITORY / "tests" / "divergences.toml").read_text()).get("gate", ())
}
MODES = ("resolve", "verify", "list", "init")
PROSE = frozenset({"note", "reason"})  # ruling H1
OURS = frozenset({"schema", "at", "run_id"})  # additive
AT = "2036-04-05T06:07:08.090Z"

Case = dict[str, Any]
Document = dict[str, Any]


class Outcome(NamedTuple):
    """How one run ended: its status, what it printed (None: nothing on stdout), the rows of gates.jsonl, its crossings as committed."""

    exit: int
    printed: Document | None
    rows: tuple[Document, ...]
    crossings: tuple[tuple[str, ...], ...]


@cache
def cases() -> list[Case]:
    groups = json.loads(CASES.read_bytes())["groups"] if CASES.is_file() else {}
    return list(groups.get("gate", ()))


def each(step: int = 1) -> Callable[[Any], Any]:
    numbered = [pytest.param(case, id=f"gate-{n}") for n, case in enumerate(cases())]
    return pytest.mark.parametrize("case", numbered[::step])


# --- the words, and the files ----------------------------------------------------------------------------------------


def words_of(case: Case) -> argparse.Namespace:
    """The recorded command line, read as the reference reads it."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for flag in ("--resolve", "--preset", "--slug", "--file", "--auto-level", "--cwd"):
        parser.add_argument(flag)
    parser.add_argument("--round", type=int)
    for flag in ("--verify", "--list", "--init", "--tiny", "--no-qa"):
        parser.add_argument(flag, action="store_true")
    return parser.parse_args(case["argv"][1:])


def our_words(case: Case) -> list[str]:
    """The same in our own words: the mode is a word, the root is where we stand."""
    words = words_of(case)
    mode = next((mode for mode in MODES if getattr(words, mode)), None)
    ours = [mode] if mode else []
    ours += [words.resolve] if words.resolve else []
    for flag in ("preset", "slug", "file", "auto_level", "round"):
        value = getattr(words, flag)
        ours += [f"--{flag.replace('_', '-')}", str(value)] if value is not None else []
    ours += [f"--{flag}" for flag in ("tiny", "no-qa") if getattr(words, flag.replace("-", "_"))]
    return [*ours, "--json"] if mode else ours


def file_bytes(content: object) -> bytes:
    """A recorded file: text as it is, a value as its JSON."""
    return (content if isinstance(content, str) else json.dumps(content)).encode()


def candidates_of(case: Case, words: argparse.Namespace) -> Iterator[Candidate]:
    """The sets that are there, in the order in which they are looked for."""
    if words.preset:
        yield Candidate(f"preset:{words.preset}", f"preset:{words.preset}", PRESETS[words.preset])
    names = [(f".shapeup/{words.slug}/gate-answers.json", RUN_ANSWERS)] if words.slug else []
    for path, committed in (*names, (".shapeup/gate-answers.json", MACHINE_ANSWERS)):
        if path in case["files"]:
            answers, faults = parse_answers(file_bytes(case["files"][path]), path)
            yield Candidate(f"file:{path}", committed, answers, faults, committed == RUN_ANSWERS)


# --- ours, two ways --------------------------------------------------------------------------------------------------


def by_functions(case: Case) -> Outcome:
    words = words_of(case)
    nothing = Outcome(2, None, (), ())
    if words.file and words.file not in case["files"]:
        return nothing
    chosen = choose(tuple(candidates_of(case, words)), words.resolve or "")
    if (words.round is not None and words.round < 1) or chosen is None or chosen.answers is None:
        return nothing
    if words.verify:
        level = next(level for level in AUTO_LEVELS if level == (words.auto_level or "unattended"))
        found = verify(chosen.answers, level, is_tiny=words.tiny, has_qa=not words.no_qa)
        document = verification_document(chosen.source, chosen.answers, found)
        return Outcome(0 if document["ok"] else 2, document, (), ())
    if words.resolve not in GATES:
        return nothing
    resolution = resolve(GATES[words.resolve], chosen, chosen.answers)
    row = gates_row(resolution, words.round, AT, None)
    crossing = crossing_of(resolution, words.round)
    return Outcome(
        {"ok": 0, "ask": 4, "abort": 5}[resolution.status],
        resolution_document(resolution),
        (row,) if words.slug else (),
        (tuple(crossing),) if words.slug and crossing else (),
    )


def by_command(case: Case, root: Path) -> Outcome:
    for path, content in case["files"].items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file_bytes(content))
    ran = gate(*our_words(case), cwd=root)
    assert bool(ran.stdout) == (not ran.stderr)
    gates, ledger = root / ".shapeup/cart/gates.jsonl", root / "shapeup/cart/round-ledger.md"
    rows = parse_rows(gates.read_bytes()) if gates.exists() else ()
    table = parse_round_ledger(ledger.read_bytes()).rows if ledger.exists() else ()
    return Outcome(
        ran.returncode, json.loads(ran.stdout) if ran.stdout else None, rows, tuple(row.cells for row in table)
    )


# --- what was recorded -----------------------------------------------------------------------------------------------


def facts(document: Mapping[str, Any] | None) -> Document | None:
    """A document without its sentences, but with which of them there were; the last cell of a ledger row is one."""
    if document is None:
        return None
    said: Document = {}
    for key, value in document.items():
        if key in PROSE:
            said[key] = value is not None
        elif key == "ledger_row":
            said[key] = [*value.split(" | ")[:3], value.split(" | ", 3)[3] != " |"]
        elif key not in OURS:
            said[key] = value
    return said


def rules_of(case: Case) -> set[str]:
    """The rules whose difference the case shows."""
    found = set()
    asked = words_of(case).resolve
    for content in case["files"].values():
        answers = content.get("answers") if isinstance(content, dict) else None
        if not isinstance(answers, dict):
            continue
        given = [answer for answer in answers.values() if isinstance(answer, dict)]
        if any(answer.get("max_rounds", 1) < 1 for answer in given):
            found.add("W-58")
        if content.get("on_missing") == "proceed" and asked not in answers and "proceed" not in GATES[asked].decisions:
            found.add("W-59")
    return found


def told(outcome: Outcome) -> tuple[int, Document | None, list[Document | None]]:
    rows = [{key: value for key, value in row.items() if key != "max_rounds"} for row in outcome.rows]  # additive there
    return outcome.exit, facts(outcome.printed), [facts(row) for row in rows]


def settle(way: str, case: Case, outcome: Outcome) -> None:
    """Equal, or different by a rule that has a row."""
    recorded = case["exit"], facts(case["stdout"]), [facts(row) for row in case["ledger_rows"] or ()]
    found = told(outcome)
    rules = rules_of(case) if found != recorded else set()
    assert found == recorded or rules, f"{case['argv']}: {found} instead of {recorded}"
    assert rules <= ROWS.keys()
    for rule in rules:
        assert DIFFERS[rule](outcome), f"{rule}: {outcome}"
    number = next(n for n, one in enumerate(cases()) if one is case)
    count(way, "gate", number, frozenset(rules))


DIFFERS: dict[str, Callable[[Outcome], bool]] = {
    "W-58": lambda ours: ours == Outcome(2, None, (), ()),
    "W-59": lambda ours: ours.exit == 4 and [row["status"] for row in ours.rows] == ["ask"] and not ours.crossings,
}


def crossing_recorded(case: Case) -> list[tuple[str, ...]]:
    """The committed row that a recorded crossing asks for. Source: protocol §1.8, F7."""
    rows = case["ledger_rows"] or ()
    by = {name: f" ({one.authorized_by})" if one.authorized_by else "" for name, one in PRESETS.items()}
    sources = {f"preset:{name}": f"preset:{name}{said}" for name, said in by.items()}
    sources |= {"file:.shapeup/cart/gate-answers.json": RUN_ANSWERS, "file:.shapeup/gate-answers.json": MACHINE_ANSWERS}
    return [
        (str(row["round"] or "—"), "—", "gate", f"GATE {row['gate']}", row["decision"], sources[row["source"]])
        for row in rows
        if row["status"] == "ok"
    ]


@each()
def test_the_functions_answer_as_recorded(case: Case) -> None:
    ours = by_functions(case)
    settle("gates, by function", case, ours)
    if told(ours)[0] == case["exit"]:
        assert list(ours.crossings) == crossing_recorded(case)


@each(2)
def test_the_command_line_answers_as_recorded(case: Case, tmp_path: Path) -> None:
    ours = by_command(case, tmp_path)
    settle("gates, by command", case, ours)
    assert told(ours) == told(by_functions(case))
    assert ours.crossings == by_functions(case).crossings
    if ours.printed is not None:
        assert next(iter(ours.printed)) == "schema"
        assert list(ours.printed)[-1] == "ok"


def test_every_row_of_the_table_is_needed() -> None:
    if not cases():
        pytest.skip("this corpus holds no gate cases")
    differing = [case for case in cases() if by_functions(case).exit != case["exit"]]
    assert {rule for case in differing for rule in rules_of(case)} == ROWS.keys()
