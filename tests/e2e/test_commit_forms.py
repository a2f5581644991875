"""Every form of commit, crossed with every kind of change: what a hook reads is what git then commits. Source: targets 15-17.

A real git makes each commit; our reader runs while the hook is running; then git is asked, by another command and another parser,
how the commit differs from each of its parents. Nothing of the index may have changed meanwhile.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hooks.changes import commit_changes
from tests.e2e.change_kinds import KEPT, KINDS, Donor, Files, Kind, lay
from tests.e2e.recording import Recorder, Seen
from tests.hooks.history import ENV, History

EDITORS = ("pre-commit", "prepare-commit-msg")
MERGERS = ("pre-merge-commit", "prepare-commit-msg")
REPLAYERS = ("prepare-commit-msg",)

STAGE = 'git add -A -- "$F"; '
TRACK = 'git add -N -- "$F"; '
QUIET = "git -c core.hooksPath=/dev/null"


class Form(NamedTuple):
    """How a commit is made. `first` runs before the case's folder becomes what the kind makes of it (`lays`), `then` after.

    $F: the case's folder; $N its number; $OUT a scratch file outside. Branches side-N and left-N fork off before main's last
    commit: side-N changes the top of `both`, brings `brought`, and where not `lays` the kind too. `conflicts`: so does main.
    """

    name: str
    then: str
    hooks: tuple[str, ...] = EDITORS
    first: str = ""
    lays: bool = True
    amends: bool = False
    conflicts: bool = False
    has_kind: bool = False  # main has the kind's change already, as commits K-N
    environment: tuple[tuple[str, str], ...] = ()
    kinds: slice = slice(None)  # every second kind is enough where the form costs much and the kind matters little
    without: tuple[str, ...] = ()  # kinds that git itself cannot commit in this form


PLACES = ("src/in", "docs/out")
FOLDERS = ("file to folder", "folder to file")
EVEN, ODD = slice(0, None, 2), slice(1, None, 2)

FORMS = (
    Form("commit", STAGE + "git commit -qm x"),
    Form("commit -a", TRACK + "git commit -qam x"),
    Form("commit -i path", TRACK + 'echo $N >other; git add other; git commit -qm x -i -- "$F"'),
    Form("commit -o path", STAGE + 'echo $N >other; git add other; git commit -qm x -o -- "$F"', without=FOLDERS),
    Form("commit --amend", STAGE + "git commit -q --amend -m x", amends=True,
         first=f"echo $N >earlier; git add earlier; {QUIET} commit -qm first"),
    Form("commit from a subdirectory", STAGE + 'cd "${F%/*}"; git commit -qm x'),
    Form("commit in a linked worktree", STAGE + "git commit -qm x"),
    Form("commit -a in a linked worktree", TRACK + "git commit -qam x", kinds=EVEN),
    Form("GIT_INDEX_FILE relative", STAGE + "git commit -qm x", environment=(("GIT_INDEX_FILE", ".git/another"),)),
    Form("GIT_INDEX_FILE absolute", STAGE + "git commit -qm x", environment=(("GIT_INDEX_FILE", "{outside}/index"),)),
    Form("another index, -a from a subdirectory", TRACK + 'cd "${F%/*}"; git commit -qam x',
         environment=(("GIT_INDEX_FILE", ".git/another"),)),
    Form("a part of what lies there", STAGE + 'mkdir -p "$F"; echo later >"$F/kept"; echo later >"$F/later"; git commit -qm x'),
    Form("commit --no-verify", STAGE + "git commit -qnm x", REPLAYERS, kinds=ODD),
    Form("commit on a detached HEAD", STAGE + "git commit -qm x", first="git checkout -q --detach", kinds=ODD),
    Form("merge --no-ff", "git merge -q --no-ff -m x side-$N", MERGERS, lays=False),
    Form("octopus", "git merge -q --no-ff -m x side-$N left-$N", MERGERS, lays=False, without=FOLDERS, kinds=EVEN),
    Form("octopus with an edit", STAGE + "git commit -qm x", without=FOLDERS,
         first="git merge -q --no-ff --no-commit side-$N left-$N", kinds=ODD),
    Form("merge with an edit", STAGE + "git commit -qm x", first="git merge -q --no-commit side-$N"),
    Form("conflicted merge", STAGE + 'echo resolved >"$F/both"; git add "$F/both"; git commit -qm x',
         first="! git merge -q side-$N", conflicts=True),
    Form("amend of a merge", STAGE + "git commit -q --amend -m x", first=f"{QUIET} merge -q --no-ff -m x side-$N",
         amends=True, kinds=EVEN),
    Form("merge --squash", "git merge -q --squash side-$N; git commit -qm x", lays=False, kinds=EVEN),
    Form("cherry-pick -n", "git cherry-pick -n side-$N; git commit -qm x", lays=False),
    Form("cherry-pick", "git cherry-pick side-$N", REPLAYERS, lays=False, kinds=ODD),
    Form("revert -n", "git revert -n K-$N; git commit -qm x", lays=False, has_kind=True),
    Form("revert", "git revert --no-edit K-$N", REPLAYERS, lays=False, has_kind=True, kinds=EVEN),
    Form("unborn HEAD", "git symbolic-ref HEAD refs/heads/u$N; git read-tree --empty; " + STAGE + "git commit -qm x"),
    Form("orphan branch", "git checkout -q --orphan o$N; " + STAGE + "git commit -qm x", kinds=ODD),
    Form("amend of a root commit", STAGE + "git commit -q --amend -m x", amends=True,
         first=f"git symbolic-ref HEAD refs/heads/u$N; git read-tree --empty; {STAGE} {QUIET} commit -qm first --allow-empty", kinds=EVEN),
)  # fmt: skip


class Case(NamedTuple):
    """One kind of change in a folder of its own."""

    number: int
    kind: Kind
    folder: str

    @property
    def before(self) -> Files:
        return KEPT | {b"both": _both()} | self.kind.before

    @property
    def after(self) -> Files:
        return KEPT | {b"both": _both()} | self.kind.after


def cases_of(form: Form) -> tuple[Case, ...]:
    kinds = [kind for kind in KINDS[form.kinds] if kind.name not in form.without]
    return tuple(Case(number, kind, f"{PLACES[number % 2]}/c{number}") for number, kind in enumerate(kinds))


def _both(top: str = "top", end: str = "end") -> tuple[str, bytes]:
    return "100644", "\n".join([top, *"123456789", end, ""]).encode()


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    made = Recorder(tmp_path_factory.mktemp("recorder"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def donor(tmp_path_factory: pytest.TempPathFactory) -> Donor:
    history = History(tmp_path_factory.mktemp("donor"))
    return Donor(history.root / ".git", (history.commit("0", a="0\n"), history.commit("1", a="1\n")))


def test_the_matrix_has_at_least_500_cases() -> None:
    count = sum(len(cases_of(form)) for form in FORMS)
    print(f"{count} cases: {len(FORMS)} forms of commit, {len(KINDS)} kinds of change")
    assert count >= 500


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_hook_reads_what_the_commit_then_changes(
    form: Form, recorder: Recorder, donor: Donor, tmp_path: Path
) -> None:
    cases = cases_of(form)
    history = History(tmp_path / "repo")
    history.git("config", "maintenance.auto", "false")
    _import(history, form, cases, donor)
    if "linked worktree" in form.name:
        history.git("worktree", "add", "-q", "-b", "work", "../linked")
        history.root = tmp_path / "linked"
    recorder.install(tmp_path / "repo" / ".git" / "hooks")
    env = ENV | {key: value.format(outside=tmp_path) for key, value in form.environment}
    for words in (["read-tree", "HEAD"], ["checkout-index", "-afq"]):
        subprocess.run(["git", *words], cwd=history.root, env=env, check=True)
    for case in cases:
        held = case.after if form.has_kind else case.before
        lay(_folder(history, case), {}, {name: file for name, file in held.items() if file[0] == "160000"}, donor)
    subprocess.run(["git", "update-index", "-q", "--refresh"], cwd=history.root, env=env, check=False)
    made = [_commit(history, form, case, env, recorder, donor) for case in cases]
    truth = _differences(history, {pair for one in made for pair in one.pairs})
    for case, one in zip(cases, made, strict=True):
        _judge(history, form, case, one, truth)


class Made(NamedTuple):
    """One commit that git made, and what its hooks saw. `amended`: the commit that it took the place of."""

    commit: str
    parents: tuple[str, ...]
    amended: str
    seen: tuple[Seen, ...]

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """What to compare: the commit with each parent, or with nothing; and with the commit that it took the place of."""
        against = self.parents or ("",)
        return tuple((self.commit, parent) for parent in (*against, *((self.amended,) if self.amended else ())))


def _commit(history: History, form: Form, case: Case, env: dict[str, str], recorder: Recorder, donor: Donor) -> Made:
    settings = env | {"F": case.folder, "N": str(case.number)}

    def run(script: str) -> list[str]:
        done = subprocess.run(
            ["sh", "-ec", script], cwd=history.root, env=settings, capture_output=True, check=False, timeout=60
        )
        assert done.returncode == 0, (form.name, case, done.stdout, done.stderr)
        return done.stdout.decode().split()

    amended = ""
    if form.first:
        amended = (
            run(form.first + ("; git rev-parse HEAD" if form.amends else ""))[-1]
            if form.amends
            else run(form.first) and ""
        )
    recorder.take()
    if form.lays:
        lay(_folder(history, case), case.before, case.after, donor)
    commit, *parents = run(f"{{ {form.then}; }} >&2; git rev-parse HEAD HEAD^@")
    return Made(commit, tuple(parents), amended, tuple(recorder.take()))


def _judge(history: History, form: Form, case: Case, made: Made, truth: Truth) -> None:
    where = (form.name, case.kind.name, case.folder)
    assert tuple(seen.hook for seen in made.seen) == form.hooks, where
    sides = [truth[made.commit, parent] for parent in made.parents or ("",)]
    whole = {row for row in sides[0] if all(row[1] in {other[1] for other in side} for side in sides[1:])}
    expected = set(truth[made.commit, made.amended]) if form.amends else whole
    for seen in made.seen:
        assert not seen.error, (where, seen.error)
        assert not seen.touched, (where, seen)
        assert {tuple(change) for change in seen.changes} == expected, (where, seen)
        assert len(seen.changes) == len(expected), where
        told = seen.parents[:1] + tuple(sorted(seen.parents[1:]))  # pre-merge-commit is not told their order
        parents = (made.amended,) if form.amends else made.parents
        assert told == parents[:1] + tuple(sorted(parents[1:])), (where, seen)
    found = commit_changes(made.commit, repo=str(history.root))
    assert {tuple(change) for change in found} == whole, where
    if form.lays and made.parents and not form.amends:
        folder = case.folder.encode() + b"/"
        names = {name for name in case.before | case.after if case.before.get(name) != case.after.get(name)}
        assert names <= {row[1].removeprefix(folder) for row in whole}, where


Row = tuple[str, bytes, str, str, str, str]
Truth = dict[tuple[str, str], frozenset[Row]]


def _differences(history: History, pairs: set[tuple[str, str]]) -> Truth:
    """How each commit differs from the other one of its pair, by one `git diff-tree`; "" stands for nothing."""
    ordered = sorted(pairs)
    asked = "".join(f"{commit} {other}".strip() + "\n" for commit, other in ordered)
    command = ["git", "diff-tree", "--stdin", "--always", "--root", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"]
    out = subprocess.run(
        command, cwd=history.root, env=ENV, input=asked.encode(), capture_output=True, check=True
    ).stdout
    tokens = out.split(b"\0")[:-1]
    answers: list[set[Row]] = []
    position = 0
    while position < len(tokens):
        if not tokens[position].startswith(b":"):
            answers.append(set())
            position += 1
            continue
        old_mode, new_mode, old, new, status = tokens[position][1:].decode().split()
        answers[-1].add((status, tokens[position + 1], old_mode, new_mode, old, new))
        position += 2
    return {pair: frozenset(rows) for pair, rows in zip(ordered, answers, strict=True)}


def _folder(history: History, case: Case) -> bytes:
    return str(history.root / case.folder).encode()


def _import(history: History, form: Form, cases: tuple[Case, ...], donor: Donor) -> None:
    """All branches by one `git fast-import`: base, side-N and left-N of each case, and main that went on from base."""
    lines: list[bytes] = []
    clock = iter(range(1_700_000_000, 1_800_000_000))

    def commit(branch: str, start: str, old: Files, new: Files, folder: str) -> None:
        lines.append(f"commit refs/heads/{branch}\ncommitter a <a@b> {next(clock)} +0000\ndata 1\nx".encode())
        if start:
            lines.append(f"from {start}".encode())
        lines.extend(b"D " + _quoted(folder, name) for name in old if name not in new)
        lines.extend(_line(folder, name, file, donor) for name, file in new.items() if old.get(name) != file)

    for case in cases:
        commit("base", "", {}, case.before, case.folder)
    for case in cases:
        side = (case.before if form.lays else case.after) | {b"both": _both(top="theirs")}
        if form.name not in ("cherry-pick", "cherry-pick -n"):
            side |= {b"brought": _both()}
        commit(f"side-{case.number}", "refs/heads/base", case.before, side, case.folder)
        commit(f"left-{case.number}", "refs/heads/base", {}, {b"left": _both()}, case.folder)
    lines.append(b"reset refs/heads/main\nfrom refs/heads/base\n")
    for case in cases if form.has_kind else ():
        commit("main", "", case.before, case.after, case.folder)
        lines.append(f"reset refs/heads/K-{case.number}\nfrom refs/heads/main\n".encode())
    ours = _both(top="ours") if form.conflicts else _both(end="ours")
    lines.append(f"commit refs/heads/main\ncommitter a <a@b> {next(clock)} +0000\ndata 1\nx\n".encode().rstrip())
    merging = "merge" in form.name or "octopus" in form.name
    lines.extend(_line(case.folder, b"both", ours, donor) for case in cases if merging)
    history.git("fast-import", "--quiet", stdin=b"\n".join(lines) + b"\n")


def _line(folder: str, name: bytes, file: tuple[str, bytes], donor: Donor) -> bytes:
    mode, data = file
    if mode == "160000":
        return f"M 160000 {donor.commits[int(data)]} ".encode() + _quoted(folder, name)
    return f"M {mode} inline ".encode() + _quoted(folder, name) + b"\ndata %d\n" % len(data) + data


def _quoted(folder: str, name: bytes) -> bytes:
    return b'"' + b"".join(b"\\%03o" % byte for byte in folder.encode() + b"/" + name) + b'"'
