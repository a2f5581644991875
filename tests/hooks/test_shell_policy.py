"""The lines a shell judges by say no more than the policy, and for each glob that can be said exactly the same. Source: design §4, ruling E10, targets 13, 18.

The real /bin/sh evaluates them, one process for all pairs, with the `case` that the stub uses.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hooks.shell_policy import render_shell_policy, shell_patterns
from parsers.globs import matches
from parsers.policy_file import Policy
from tests.hooks.changing import judged, order, policy

ROUNDS = max(25, int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "0")) // 100)
PAIRS = 500  # in each round

# Reads a path as git prints it and the lines of its policy up to the closing dot; says 1 where a line covers the path.
STUB = r"""
slashes() { rest=$1 n=0; while case $rest in */*) ;; *) false ;; esac; do rest=${rest#*/} n=$((n + 1)); done; }
while IFS= read -r path; do
  hit=0
  while IFS= read -r line; do
    case $line in
    .) break ;;
    +*) case "+$path" in $line) hit=1 ;; esac ;;
    -*) case "-$path" in $line)
      slashes "$path"; had=$n; slashes "$line"
      [ "$n" = "$had" ] && hit=1 ;;
    esac ;;
    esac
  done
  case $path in '"'* | [Ss][Hh][Aa][Pp][Ee][Uu][Pp]/* | .[Ss][Hh][Aa][Pp][Ee][Uu][Pp] | .[Ss][Hh][Aa][Pp][Ee][Uu][Pp]/*) hit=0 ;; esac
  echo "$hit"
done
"""
SHELLS = [[shell, *options] for shell, *options in (["/bin/sh"], ["bash", "--posix"]) if shutil.which(shell)]


def covered(shell: list[str], asked: Iterable[tuple[str, Iterable[str]]], *, raw: bool = False) -> list[bool]:
    """What the shell says of each path under its lines. `raw`: names come as they are, as under core.quotePath=false."""
    shown = [(path if raw else as_git_prints(path), lines) for path, lines in asked]
    stdin = "".join("\n".join((path, *lines, ".\n")) for path, lines in shown)
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    ran = subprocess.run(
        [*shell, "-c", STUB],
        input=stdin.encode("utf-8", "surrogateescape"),
        capture_output=True,
        env=environment,
        check=True,
    )
    assert ran.stderr == b""
    return [line == b"1" for line in ran.stdout.splitlines()]


def as_git_prints(path: str) -> str:
    """The path without -z: quoted where it holds anything but printable ASCII, or a quote, or a backslash."""
    if path.isascii() and path.isprintable() and not set(path) & {'"', "\\"}:
        return path
    return '"' + "".join(f"\\{byte:03o}" for byte in path.encode("utf-8", "surrogateescape")) + '"'


@cache
def naive(glob: str, path: str) -> bool:
    """The table of §3.2 read aloud, by itself: spend the glob's first token in every way there is."""
    if not glob:
        return not path
    if glob.startswith("**/"):
        head, slash, rest = path.partition("/")
        inside = bool(slash and head) and "\n" not in head and naive(glob, rest)
        return inside or naive(glob[3:], path)
    if glob.startswith("**"):
        return naive(glob[2:], path) or (path[:1] not in ("", "\n") and naive(glob, path[1:]))
    if glob[0] == "*":
        return naive(glob[1:], path) or (path[:1] not in ("", "/") and naive(glob, path[1:]))
    return (
        path[:1] not in ("", "/" if glob[0] == "?" else "") and glob[0] in ("?", path[0]) and naive(glob[1:], path[1:])
    )


NAMES = [
    "a",
    "b",
    "ab",
    "A",
    "src",
    "Src",
    ".",
    ".x",
    "a.py",
    "-",
    "~",
    "+",
    "@x",
    "a b",
    "=,",
    "_9",
    "é",
    "e\u0301",
    "ß",
    "[a]",
    "\\",
    '"',
    "$",
    "#",
    "\n",
    "x\udcff",
]
PLAIN = NAMES[:16]
WILD = ["*", "**", "**/", "?", "*", "**", "**/"]


def some_glob(rng: random.Random) -> str:
    names = PLAIN if rng.random() < 0.8 else NAMES
    parts = []
    for _ in range(rng.randint(1, 5)):
        parts.append(rng.choice(WILD) if rng.random() < 0.5 else rng.choice(names))
        parts.append("/" if rng.random() < 0.4 else "")
    return "".join(parts).rstrip("/" if rng.random() < 0.9 else "")


SPENT = {
    "**/": ("", "a/", "src/ab/", "b/"),
    "**": ("", "a", "a/b", ".x/A"),
    "*": ("", "a", ".b", "b.py", "é"),
    "?": ("a", "é", "b", "/"),
}


def some_path(rng: random.Random, glob: str) -> str:
    """Any path, or one made from the glob, now and then with one character of it changed."""
    if rng.random() < 0.3:
        return "/".join(rng.choice(NAMES if rng.random() < 0.2 else PLAIN) for _ in range(rng.randint(1, 4)))
    path, at = "", 0
    while at < len(glob):
        token = next(token for token in ("**/", "**", "*", glob[at]) if glob.startswith(token, at))
        path += rng.choice(SPENT.get(token, (token,)))
        at += len(token)
    if path and rng.random() < 0.25:
        spot = rng.randrange(len(path))
        path = path[:spot] + rng.choice(["", "/", "x", path[spot].swapcase()]) + path[spot + 1 :]
    return path


def is_clean(path: str) -> bool:
    """Whether git can hold the path: no empty segment, and none that is a dot or two."""
    return all(part not in ("", ".", "..") for part in path.split("/")) and "\0" not in path


def is_python(path: str) -> bool:
    """Whether the stub leaves the path to Python whatever the lines say."""
    return path.lower() == ".shapeup" or path.lower().startswith(("shapeup/", ".shapeup/"))


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    """At least ten thousand different pairs, the same in every run."""
    found: dict[tuple[str, str], None] = {}

    @settings(
        max_examples=ROUNDS, derandomize=True, database=None, suppress_health_check=list(HealthCheck), deadline=None
    )
    @given(st.integers(0, 2**32))
    def collect(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(PAIRS):
            glob = some_glob(rng)
            found[glob, some_path(rng, glob)] = None

    collect()
    rng = random.Random(0)
    while len(found) < 10_000:
        glob = some_glob(rng)
        found[glob, some_path(rng, glob)] = None
    return list(found)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_policy_naive_matcher_and_shell_agree(
    shell: list[str], pairs: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    says = covered(shell, [(path, shell_patterns(glob)) for glob, path in pairs])
    exact = hits = 0
    for (glob, path), is_covered in zip(pairs, says, strict=True):
        assert matches(glob, path) is naive(glob, path), (glob, path)
        if not is_clean(path):
            continue
        if is_covered:
            assert matches(glob, path), (glob, path, shell_patterns(glob))
        is_sayable = shell_patterns(glob) and as_git_prints(path) == path and not is_python(path)
        if is_sayable:
            assert is_covered is matches(glob, path), (glob, path, shell_patterns(glob))
            exact += 1
            hits += is_covered
    assert len(pairs) >= 10_000
    assert exact > len(pairs) // 4
    assert hits > exact // 10
    with capsys.disabled():
        print(
            f"\n{len(pairs)} glob/path pairs, three ways by {shell[0]}: {exact} said by the shell as well, {hits} covered"
        )


def test_no_line_covers_what_the_policy_refuses(
    pairs: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whole files of lines: two orders, freezes in other spellings, sections, people's globs; raw names are tried unquoted too."""
    rng = random.Random(7)
    asked: list[tuple[str, Policy]] = []
    for glob, path in pairs:
        if is_clean(path):
            frozen = rng.choice([some_glob(rng), twisted(rng, path), twisted(rng, path) + "#Steps", glob, "README"])
            other = order("cart/b-r1-a1", allowed=(some_glob(rng),), answered=rng.random() < 0.5)
            first = order(allowed=(glob,), shared=(some_glob(rng),), frozen=(frozen,))
            human = (some_glob(rng),) if rng.random() < 0.2 else ()
            asked.append((path, policy(first, other, human_globs=human)))
    lines = [(path, render_shell_policy(of).splitlines()[1:-1]) for path, of in asked]
    says = covered(SHELLS[0], lines)
    raw = [("_" if "\n" in path else path, said) for path, said in lines]
    for (path, of), *covers in zip(asked, says, covered(SHELLS[0], raw, raw=True), strict=True):
        if any(covers) and "\n" not in path:
            assert judged(of, path) == (), (path, of)
    with capsys.disabled():
        print(f"\n{len(asked)} policies with freezes: {sum(says)} paths covered, none of them refused")
    assert sum(says) > len(asked) // 20


def twisted(rng: random.Random, path: str) -> str:
    """The path in another spelling."""
    return rng.choice([str.upper, str.lower, str.swapcase, str.title, lambda text: text.replace("é", "e\u0301")])(path)


# --- the file --------------------------------------------------------------------------------------------------------


def lines_of(of: Policy) -> list[str]:
    return render_shell_policy(of).splitlines()


def test_the_first_line_says_mode_count_and_orders() -> None:
    assert lines_of(policy()) == ["shapeupd-policy 1 open 2 digest", "@ -", "."]
    union = lines_of(policy(order(allowed=("src/**",))))
    assert union == ["shapeupd-policy 1 union 4 digest", "@cart/core-r1-a1 execute", "+src/*", "@ -", "."]
    closed = policy(order(allowed=("src/**",), answered=True), no_live_order="deny", has_open_run=True)
    assert lines_of(closed) == ["shapeupd-policy 1 closed 1 digest", "."]
    assert render_shell_policy(policy()).endswith("\n.\n")


def test_the_count_is_the_number_of_lines_after_the_first() -> None:
    of = policy(order(allowed=("a/**/b", "c/*.py", "d")), order("cart/x", "", shared=("d", "d")), human_globs=("e/*",))
    first, *rest = lines_of(of)
    assert int(first.split()[3]) == len(rest)
    assert rest[-1] == "."
    assert "@cart/x -" in rest
    assert rest.count("+d") == 2  # once a group


def test_groups_are_those_that_permit_in_the_open_mode_too() -> None:
    of = policy(
        order("cart/a-r1-a1", allowed=("a/**",), superseded=True, answered=False),
        order("cart/a-r1-a2", allowed=("a/**",)),
        order("cart/b-r1-a1", allowed=("b/**",), answered=True),
    )
    assert [line for line in lines_of(of) if line[0] == "@"] == [
        "@cart/a-r1-a2 execute",
        "@cart/b-r1-a1 answered execute",
        "@ -",
    ]
    answered = policy(order(allowed=("a/**",), answered=True))
    assert lines_of(answered)[0].split()[2] == "open"
    assert "+a/*" in lines_of(answered)  # for SHAPEUP_ORDER


@pytest.mark.parametrize(
    ("glob", "lines"),
    [
        ("src/app.py", ["+src/app.py"]),
        ("src/**", ["+src/*"]),
        ("src/*.py", ["-src/*.py"]),
        ("src/**/*.ts", ["+src/*.ts"]),
        ("a/**/b", ["+a/b", "+a/*/b"]),
        ("a/*/**", ["+a/*/*"]),
        ("a b/?.md", ["-a b/?.md"]),
        ("a/**/**/b", ["+a/b", "+a/*/b"]),
        ("packages/*/tests/**", []),
        ("a**/b", []),
        ("docs/naïve/**", []),
        ("src/[ab].py", []),
        ("a$b", []),
        ("a\\b", []),
        ("a'b", []),
        ("a;b", []),
        ("a#b", []),
        ("src/** ", []),
        (" src/**", []),
        ("a\nb", []),
        ("", []),
        ("shapeup/cart/scopes/*.md", []),
        (".shapeup/cart/spikes/**", []),
        ("**", []),  # would cover the settings
        ("*", []),
        ("*.toml", []),
        ("**/*.py", ["+*.py"]),
        (".shapeupd.toml", []),
    ],
)
def test_a_glob_is_said_exactly_or_not_at_all(glob: str, lines: list[str]) -> None:
    assert [line for line in lines_of(policy(order(allowed=(glob,)))) if line[0] in "+-"] == lines


@pytest.mark.parametrize(
    ("frozen", "has_line"),
    [
        ("src/core.py", False),
        ("SRC/core.py", False),
        ("src/**/x.md#Steps", False),
        ("**/*.lock", False),
        ("ſrc/x", False),  # folds to src/x
        ("lib/**", True),
        ("src", True),
        ("srcs/**", True),
    ],
)
def test_a_glob_that_may_meet_a_frozen_one_has_no_line(frozen: str, has_line: bool) -> None:
    of = policy(order(allowed=("src/**",)), order("cart/b-r1-a1", frozen=(frozen,)))
    assert ("+src/*" in lines_of(of)) is has_line


def test_one_character_that_folds_to_two_does_not_come_past_a_freeze() -> None:
    of = policy(order(allowed=("src/?.py", "doc/*"), frozen=("src/ss.py", "DOC/é")))
    assert not [line for line in lines_of(of) if line[0] in "+-"]


def test_an_order_id_that_is_none_makes_no_group() -> None:
    for name in ("cart/a b", "cart/a\n+*", "@", ""):
        assert lines_of(policy(order(name, allowed=("src/**",))))[1:] == ["@ -", "."]
    assert "@cart/x -" in lines_of(policy(order("cart/x", "exe cute\n+*", allowed=("src/**",))))


def test_a_thousand_orders_that_freeze_much_the_same_are_rendered_by_looking_up() -> None:
    core = tuple(f"spec/{name}/*.md#Steps" for name in "abcdefgh")
    of = policy(
        *(order(f"cart/s{n}-r1-a1", allowed=(f"src/s{n}/**", f"tests/s{n}/*.py"), frozen=core) for n in range(1000))
    )
    assert len(lines_of(of)) == 1 + 3 * 1000 + 2
