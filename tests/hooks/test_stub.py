"""The installed stub: what it decides without Python, and that it decides nothing that Python would decide otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from parsers.policy_file import Contract, Policy
from tests.hooks.gated import CART, ENV, HOOKS, SHELLS, STRICT, STUB, TAX, Gated, fill_stub

NOWHERE = "/nowhere/python"  # a stub that asks Python denies: what passes has been decided by the shell


@pytest.fixture(params=[name for name in SHELLS if name != "busybox" or shutil.which("busybox")])
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    words = SHELLS[request.param]
    if shutil.which(words[0]) is None:
        if "CI" in os.environ:
            pytest.fail(f"{words[0]} must be here")
        pytest.skip(f"there is no {words[0]} on this machine")
    return words


@pytest.fixture
def quick(tmp_path: Path, shell: tuple[str, ...]) -> Gated:
    """Python is out of reach."""
    gated = Gated(tmp_path / "repo", shell, ())
    gated.install(STRICT, python=NOWHERE)
    return gated


@pytest.fixture
def gated(tmp_path: Path, shell: tuple[str, ...]) -> Gated:
    return Gated(tmp_path / "repo", shell)


def test_the_shell_accepts_every_line_of_it(shell: tuple[str, ...]) -> None:
    done = subprocess.run([*shell, "-n", str(STUB)], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_our_mark_is_at_the_top() -> None:
    assert b"shapeupd gate" in STUB.read_bytes()[:400]


def test_without_orders_every_commit_passes(quick: Gated) -> None:
    assert quick.commit("docs/x") is None
    (quick.root / ".shapeup/cart/orders").mkdir(parents=True)
    assert quick.commit("docs/y", ".shapeup/z", SHAPEUP_ORDER="cart/core-r1-a1") is None
    assert quick.accepts() == []


def test_what_an_order_allows_passes_without_python_and_is_stamped_and_noted(quick: Gated) -> None:
    quick.orders(CART, TAX)
    assert quick.commit("src/cart/x", "src/cart/deep/er/y") is None
    assert quick.message() == "change\n\nShapeup-Order: cart/core-r1-a1\nShapeup-Operation: execute"
    assert quick.accepts() == [f"{quick.git('rev-parse', 'HEAD')} cart/core-r1-a1"]


def test_what_no_order_allows_is_refused_with_a_reason_and_a_way_forward(gated: Gated) -> None:
    gated.orders(CART, TAX)
    said = gated.commit("docs/x", "src/cart/x")
    assert said is not None
    lines = said.splitlines()
    assert lines[0] == "shapeupd: this commit is refused (1 path)"
    assert lines[1].startswith("docs/x: OUTSIDE ")
    assert lines[2].startswith("  why: ")
    assert lines[3] == "  fix: git restore --staged -- docs/x"
    assert "SHAPEUP_OVERRIDE" in lines[-1]
    gated.git("restore", "--staged", "--", "docs/x")
    gated.git("commit", "-qm", "the way forward works")


def test_no_verify_meets_the_same_wall(gated: Gated) -> None:
    gated.orders(CART)
    said = gated.commit("docs/x", args=["--no-verify"])
    assert said is not None
    assert "docs/x: OUTSIDE" in said


def test_a_hook_that_lost_its_bit_is_made_up_for_by_the_next(gated: Gated) -> None:
    gated.orders(CART)
    (gated.root / ".git/hooks/pre-commit").chmod(0o644)
    assert "docs/x: OUTSIDE" in (gated.commit("docs/x") or "")


def test_a_change_that_two_orders_share_is_not_stamped(quick: Gated) -> None:
    quick.orders(CART, Contract("cart/both-r1-a1", "fix", allowed=("src/**",)))
    assert quick.commit("src/cart/x") is None
    assert quick.message() == "change"
    assert quick.commit("src/tax/x") is None
    assert quick.message().endswith("Shapeup-Order: cart/both-r1-a1\nShapeup-Operation: fix")
    assert quick.accepts()[0].endswith(" -")


def test_a_change_that_only_two_orders_together_cover_passes_unstamped(quick: Gated) -> None:
    quick.orders(CART, TAX)
    assert quick.commit("src/cart/x", "src/tax/x") is None
    assert quick.message() == "change"


def test_the_named_order_alone_permits(gated: Gated) -> None:
    gated.orders(CART, TAX)
    said = gated.commit("src/cart/x", SHAPEUP_ORDER="cart/tax-r1-a1")
    assert said is not None
    assert "src/cart/x: OUTSIDE cart/tax-r1-a1" in said
    assert gated.commit("src/cart/x", SHAPEUP_ORDER="cart/core-r1-a1") is None
    assert "Shapeup-Order: cart/core-r1-a1" in gated.message()


def test_the_named_order_is_stamped_even_on_an_empty_commit(quick: Gated) -> None:
    quick.orders(CART, TAX)
    assert quick.commit(args=["--allow-empty"], SHAPEUP_ORDER="cart/tax-r1-a1") is None
    assert "Shapeup-Order: cart/tax-r1-a1" in quick.message()


def test_a_trailer_holds_the_commit_to_its_order(gated: Gated) -> None:
    gated.orders(CART, TAX)
    said = gated.commit("src/cart/x", message="change\n\nShapeup-Order: cart/tax-r1-a1")
    assert said is not None
    assert "src/cart/x: OUTSIDE cart/tax-r1-a1" in said
    assert gated.commit("src/cart/x", message="change\n\nShapeup-Order: cart/core-r1-a1") is None
    assert gated.message().count("Shapeup-Order") == 1


@pytest.mark.parametrize("order_id", ["cart/never-r1-a1", "no id", "cart/core-r1-a1 cart/tax-r1-a1", "../x"])
def test_a_trailer_that_names_no_order_is_refused(gated: Gated, order_id: str) -> None:
    gated.orders(CART, TAX)
    said = gated.commit("src/cart/x", message=f"change\n\nShapeup-Order: {order_id}")
    assert said is not None
    assert "TRAILER-UNKNOWN" in said


def test_a_trailer_put_in_by_the_editor_is_checked_too(gated: Gated) -> None:
    gated.orders(CART, TAX)
    gated.stage("src/cart/x")
    editor = gated.write("../editor", "#!/bin/sh\nprintf 'change\\n\\nShapeup-Order: cart/tax-r1-a1\\n' >\"$1\"\n")
    editor.chmod(0o755)
    done = gated.try_git("commit", "-q", GIT_EDITOR=str(editor))
    assert done.returncode != 0
    assert "src/cart/x: OUTSIDE cart/tax-r1-a1" in done.stderr


def test_an_editor_session_without_words_is_an_empty_commit(gated: Gated) -> None:
    gated.orders(CART)
    gated.stage("src/cart/x")
    done = gated.try_git("commit", "-q", GIT_EDITOR="true")
    assert done.returncode != 0
    assert "says nothing but what shapeupd put there" in done.stderr


def test_an_editor_sees_the_stamp_and_may_take_it_out(gated: Gated) -> None:
    gated.orders(CART)
    gated.stage("src/cart/x")
    editor = gated.write("../editor", '#!/bin/sh\ncp "$1" "$1.seen"\necho words >"$1"\n')
    editor.chmod(0o755)
    gated.git("commit", "-q", GIT_EDITOR=str(editor))
    seen = (gated.root / ".git/COMMIT_EDITMSG.seen").read_text()
    assert seen.index("Shapeup-Order: cart/core-r1-a1") < seen.index("# Please enter")
    assert gated.accepts() == [f"{gated.git('rev-parse', 'HEAD')} -"]


@pytest.mark.parametrize(
    "message",
    [
        "fix: one line",
        "fix\n\nA body: with a colon.\nAnd more.",
        "fix\n\nA body.\n\nSigned-off-by: A <a@b>",
        "fix\n\nCo-authored-by: A <a@b>\nReviewed-by: B <b@c>",
        "fix\n\n---\n\nbelow a divider",
        "fix\n\nlines # with signs\n\n\n",
        "two\nlines of title",
        "fix\n\nlast: one\n\nplain end",
    ],
)
def test_the_stamp_stands_where_git_would_put_it(quick: Gated, message: str) -> None:
    quick.orders(CART)
    assert quick.commit("src/cart/x", message=message) is None
    words = ["--trailer", "Shapeup-Order: cart/core-r1-a1", "--trailer", "Shapeup-Operation: execute"]
    by_git = subprocess.run(
        ["git", "interpret-trailers", "--no-divider", *words],
        input=message + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    stripped = subprocess.run(["git", "stripspace"], input=by_git.stdout, capture_output=True, text=True, check=True)
    assert quick.message() == stripped.stdout.strip()
    assert quick.git("log", "-1", "--format=%(trailers:key=Shapeup-Order,valueonly)") == "cart/core-r1-a1"


def test_an_amend_keeps_one_stamp_and_leaves_no_note(gated: Gated) -> None:
    gated.orders(CART)
    assert gated.commit("src/cart/x") is None
    gated.stage("src/cart/y")
    gated.git("commit", "-q", "--amend", "--no-edit")
    assert gated.message().count("Shapeup-Order") == 1
    assert len(gated.accepts()) == 1


def test_the_next_commit_is_judged_anew_though_the_last_was_noted(gated: Gated) -> None:
    gated.orders(CART)
    assert gated.commit("src/cart/x") is None
    assert gated.commit("docs/x", args=["-n"]) is not None


@pytest.mark.parametrize("args", [["-a"], ["-i", "docs/a"], ["-o", "docs/a"]])
def test_every_index_that_git_names_is_judged(gated: Gated, args: list[str]) -> None:
    gated.orders(CART)
    gated.write("docs/a", "changed\n")
    done = gated.try_git("commit", "-qm", "x", *args)
    assert done.returncode != 0
    assert "docs/a: OUTSIDE" in done.stderr
    gated.git("checkout", "--", "docs")
    gated.write("src/cart/a", "changed\n")
    gated.git("commit", "-qm", "x", *(word.replace("docs", "src/cart") for word in args))
    assert "Shapeup-Order" in gated.message()


@pytest.mark.parametrize("is_relative", [True, False])
def test_a_private_index_is_judged(gated: Gated, is_relative: bool) -> None:
    gated.orders(CART)
    index = ".git/other" if is_relative else str(gated.root / ".git/other")
    gated.git("read-tree", "HEAD", GIT_INDEX_FILE=index)
    gated.write("docs/x")
    gated.git("add", "docs/x", GIT_INDEX_FILE=index)
    assert "docs/x: OUTSIDE" in gated.try_git("commit", "-qm", "x", GIT_INDEX_FILE=index).stderr


def test_a_linked_worktree_is_judged_by_the_orders_of_the_main_one(gated: Gated) -> None:
    gated.orders(CART)
    tree = gated.root.parent / "linked"
    gated.git("worktree", "add", "-q", str(tree), "-b", "side")
    (tree / "docs/x").write_text("x\n")
    gated.git("add", "-A", cwd=tree)
    assert "docs/x: OUTSIDE" in gated.try_git("commit", "-qm", "x", cwd=tree).stderr
    gated.git("reset", "-q", "--hard", cwd=tree)
    (tree / "src/cart/x").write_text("x\n")
    gated.git("add", "-A", "src", cwd=tree)
    gated.git("commit", "-qm", "x", cwd=tree)
    assert gated.accepts() == [f"{gated.git('rev-parse', 'side')} cart/core-r1-a1"]


def test_the_first_commit_of_all_is_judged(tmp_path: Path, shell: tuple[str, ...]) -> None:
    gated = Gated(tmp_path / "repo", shell)
    gated.orders(CART)
    gated.git("checkout", "-q", "--orphan", "fresh")
    gated.git("rm", "-rqf", "--cached", ".")
    assert "docs/x: OUTSIDE" in (gated.commit("docs/x") or "")
    gated.git("rm", "-rqf", "--cached", ".")
    assert gated.commit("src/cart/x") is None


def test_odd_names_and_links_are_left_to_python(gated: Gated) -> None:
    gated.orders(CART)
    assert gated.commit("src/cart/ä", 'src/cart/"q"', "src/cart/a b", "src/cart/ta\tb") is None
    assert "line\\nbreak" in (gated.commit("src/cart/line\nbreak") or "")
    gated.git("reset", "-q", "--hard")
    assert "docs/ä: OUTSIDE" in (gated.commit("docs/ä") or "")
    gated.git("reset", "-q", "--hard")
    os.symlink("/etc/passwd", gated.root / "src/cart/link")
    gated.git("add", "-A")
    done = gated.try_git("commit", "-qm", "x")
    assert "src/cart/link: SYMLINK" in done.stderr


def test_nothing_of_the_local_tree_is_committed_while_orders_live(gated: Gated) -> None:
    gated.orders(Contract("cart/all-r1-a1", "execute", allowed=("**",)))
    for path in (".shapeup/cart/x", ".SHAPEUP/y"):
        said = gated.commit(path)
        assert said is not None
        assert "R-37" in said
        gated.git("reset", "-q", "--hard")


def test_a_frozen_path_beats_an_allowed_one_in_the_shell_too(gated: Gated) -> None:
    frozen = Contract("cart/wire-r1", "wire", allowed=("src/wire/**",), frozen=("src/cart/core/**",))
    gated.orders(CART, frozen)
    assert gated.commit("src/tax/x") is not None
    gated.git("reset", "-q", "--hard")
    assert "FROZEN" in (gated.commit("src/cart/core/x") or "")


def test_a_live_order_without_globs_narrows_nothing(quick: Gated) -> None:
    quick.orders(Contract("cart/core-r1-a1", "execute"))
    assert quick.commit("docs/x") is None
    assert quick.message() == "change"


def test_a_required_order_that_is_not_there_is_missed(gated: Gated) -> None:
    gated.write(".shapeup/cart/receipt.json", "{}")
    gated.policy(Policy("-", (), no_live_order="deny", has_open_run=True))
    assert "NO-LIVE-ORDER" in (gated.commit("docs/x") or "")


@pytest.mark.parametrize("change", ["an order", "a receipt", "the folder", "harness-run.md", "a second run"])
def test_a_policy_older_than_what_it_was_made_from_is_not_believed(quick: Gated, change: str) -> None:
    quick.orders(CART, TAX)
    policy = quick.root / ".shapeup/policy.paths"
    later = policy.stat().st_mtime_ns + 1
    match change:
        case "an order":
            os.utime(quick.root / ".shapeup/cart/orders/tax-r1-a1.json", ns=(later, later))
        case "a receipt":
            os.utime(quick.write(".shapeup/cart/receipt.json"), ns=(later, later))
        case "the folder":
            os.utime(quick.root / ".shapeup/cart/orders", ns=(later, later))
        case "harness-run.md":
            os.utime(quick.write(".shapeup/cart/harness-run.md"), ns=(later, later))
        case _:
            os.utime(quick.write(".shapeup/other/orders/x-r1-a1.json"), ns=(later, later))
    if "busybox" in quick.shell:
        pytest.skip("this shell compares whole seconds")
    said = quick.commit("src/cart/x")
    assert said is not None
    assert NOWHERE in said


@pytest.mark.parametrize("count", [1, 30, 300])
def test_a_long_policy_gives_the_same_verdicts(quick: Gated, count: int) -> None:
    crowd = tuple(
        Contract(f"cart/s{n}-r1-a1", "execute", allowed=(f"src/s{n}/**", f"lib/s{n}/*.py", f"s{n}.txt"))
        for n in range(count)
    )
    quick.orders(
        *crowd, CART, Contract("tax/rates-r1-a1", "fix", allowed=("src/tax/*/rates.py", "*/tax/x", "Makefile"))
    )
    last = count - 1
    assert quick.commit(f"src/s{last}/x", f"lib/s{last}/y.py", f"s{last}.txt") is None
    assert f"Shapeup-Order: cart/s{last}-r1-a1" in quick.message()
    assert quick.commit("src/tax/eu/rates.py", "docs/tax/x", "Makefile") is None
    assert quick.message().endswith("Shapeup-Order: tax/rates-r1-a1\nShapeup-Operation: fix")
    assert quick.commit("src/cart/x", SHAPEUP_ORDER="cart/core-r1-a1") is None
    for path in ("docs/x", f"lib/s{last}/deep/y.py", "src/tax/eu/x/rates.py", "srcs/x", "src/cart"):
        if path == "src/cart":
            shutil.rmtree(quick.root / path)
        assert quick.commit(path) is not None, path
        quick.git("reset", "-q", "--hard")
    assert quick.commit("src/cart/x2", SHAPEUP_ORDER="tax/rates-r1-a1") is not None


def test_a_newer_order_among_many_is_seen(quick: Gated) -> None:
    crowd = tuple(Contract(f"cart/s{n}-r1-a1", "execute", allowed=(f"src/s{n}/**",)) for n in range(150))
    quick.orders(*crowd)
    assert quick.commit("src/s7/x") is None
    later = (quick.root / ".shapeup/policy.paths").stat().st_mtime_ns + 10**9
    os.utime(quick.root / ".shapeup/cart/orders/s77-r1-a1.json", ns=(later, later))
    assert quick.commit("src/s7/y") is not None


def test_a_rebase_is_not_stopped_but_a_named_order_is(gated: Gated) -> None:
    gated.git("checkout", "-q", "-b", "side")
    gated.git("checkout", "-q", "-b", "old")
    gated.write("docs/x")
    gated.git("add", "-A")
    gated.git("commit", "-qm", "before the order")
    gated.git("checkout", "-q", "side")
    gated.orders(CART)
    assert gated.commit("src/cart/x") is None
    gated.git("rebase", "-q", "side", "old")
    assert gated.git("log", "-1", "--format=%s") == "before the order"
    gated.git("checkout", "-q", "side")
    assert gated.try_git("cherry-pick", "old", SHAPEUP_ORDER="cart/core-r1-a1").returncode != 0


def test_a_merge_is_judged_by_what_differs_from_every_parent(gated: Gated) -> None:
    gated.git("checkout", "-q", "-b", "base")
    gated.write("docs/base", "from the base\n")
    gated.git("add", "-A")
    gated.git("commit", "-qm", "docs")
    gated.git("checkout", "-q", "main")
    gated.orders(CART)
    assert gated.commit("src/cart/x") is None
    gated.git("merge", "-q", "--no-edit", "base")
    assert "Shapeup-Order" not in gated.message()
    gated.git("reset", "-q", "--hard", "HEAD^")
    gated.git("merge", "-q", "--no-commit", "--no-ff", "base")
    assert "docs/own: OUTSIDE" in (gated.commit("docs/own") or "")


def test_what_slipped_in_may_be_taken_out(gated: Gated) -> None:
    gated.orders(CART)
    order = gated.root / ".shapeup/cart/orders/core-r1-a1.json"
    long_ago = 1_780_000_000 * 10**9
    os.utime(order, ns=(long_ago, long_ago))
    gated.stage("docs/slip")
    gated.git("-c", "core.hooksPath=/dev/null", "commit", "-qm", "past the hooks")
    gated.git("rm", "-q", "docs/slip")
    gated.git("commit", "-qm", "taken out again")
    gated.git("rm", "-q", "docs/a")
    assert "docs/a: OUTSIDE" in gated.try_git("commit", "-qm", "no way back").stderr


# ------------------------------------------------------------------------------------------------ strict mode


@pytest.fixture
def strict(tmp_path: Path, shell: tuple[str, ...]) -> Gated:
    return Gated(tmp_path / "repo", shell, STRICT)


def test_strict_mode_lets_a_good_commit_pass_without_python(quick: Gated) -> None:
    quick.orders(CART, TAX)
    assert quick.commit("src/cart/x") is None
    quick.git("branch", "other")
    quick.git("tag", "v1")
    assert quick.commit("src/cart/y", SHAPEUP_ORDER="cart/core-r1-a1") is None


@pytest.mark.parametrize(
    "words",
    [
        ["reset", "-q", "--hard", "OUT"],
        ["branch", "-f", "side", "OUT"],
        ["update-ref", "refs/heads/x", "OUT"],
        ["merge", "-q", "--ff-only", "OUT"],
    ],
    ids=" ".join,
)
def test_strict_mode_stops_a_branch_from_moving_to_what_slipped_in(strict: Gated, words: list[str]) -> None:
    strict.stage("docs/x")
    out = strict.git("commit-tree", "-m", "out", "-p", "HEAD", strict.git("write-tree"))
    strict.git("reset", "-q", "--hard")
    strict.orders(CART)
    done = strict.try_git(*(out if word == "OUT" else word for word in words))
    assert done.returncode != 0
    assert "docs/x: OUTSIDE" in done.stderr
    assert "no branch has moved" in done.stderr


def test_strict_mode_holds_a_commit_to_its_trailer(strict: Gated) -> None:
    strict.orders(CART, TAX)
    strict.stage("src/cart/x")
    tree = strict.git("write-tree")
    out = strict.git("commit-tree", "-m", "out", "-m", "Shapeup-Order: cart/tax-r1-a1", "-p", "HEAD", tree)
    done = strict.try_git("update-ref", "refs/heads/x", out)
    assert "src/cart/x: OUTSIDE cart/tax-r1-a1" in done.stderr


def test_strict_mode_judges_an_amended_commit_as_a_whole(strict: Gated) -> None:
    strict.stage("docs/x")
    strict.git("-c", "core.hooksPath=/dev/null", "commit", "-qm", "slipped in")
    strict.orders(CART)
    said = strict.commit("src/cart/x", args=["--amend"])
    assert said is not None
    assert "docs/x: OUTSIDE" in said


def test_strict_mode_lets_branches_go_and_be_renamed(strict: Gated) -> None:
    strict.stage("docs/x")
    strict.git("commit", "-qm", "before the order")
    strict.orders(CART)
    strict.git("branch", "-m", "renamed")
    strict.git("branch", "twin")
    strict.git("branch", "-D", "twin")
    strict.git("checkout", "-q", "-b", "third")
    assert strict.commit("src/cart/x") is None


# ------------------------------------------------------------------------------------------------ beside others


def saved(gated: Gated, hook: str, text: str) -> Path:
    return gated.hook(f"{hook}.shapeupd-saved", text)


def test_what_stood_there_before_runs_after_us_with_its_arguments(quick: Gated) -> None:
    quick.orders(CART)
    for hook in HOOKS[:-1]:
        saved(quick, hook, f'#!/bin/sh\necho {hook} "$#" >>.git/ran\n')
    assert quick.commit("src/cart/x") is None
    assert (quick.root / ".git/ran").read_text().split("\n")[:4] == [
        "pre-commit 0",
        "prepare-commit-msg 2",
        "commit-msg 1",
        "post-commit 0",
    ]


def test_its_exit_status_counts_and_our_refusal_comes_first(gated: Gated) -> None:
    gated.orders(CART)
    saved(gated, "pre-commit", "#!/bin/sh\necho theirs >>.git/ran\nexit 3\n")
    assert "OUTSIDE" in (gated.commit("docs/x") or "")
    assert not (gated.root / ".git/ran").exists()
    gated.git("reset", "-q", "--hard")
    assert gated.commit("src/cart/x") is not None
    assert (gated.root / ".git/ran").exists()


def test_a_hook_that_changes_the_index_after_us_is_caught_by_the_next(gated: Gated) -> None:
    gated.orders(CART)
    gated.write("docs/late")
    saved(gated, "pre-commit", "#!/bin/sh\ngit add docs/late\n")
    assert "docs/late: OUTSIDE" in (gated.commit("src/cart/x") or "")


def test_stdin_reaches_both(tmp_path: Path, shell: tuple[str, ...]) -> None:
    gated = Gated(tmp_path / "repo", shell, STRICT)
    gated.orders(CART)
    saved(gated, "reference-transaction", '#!/bin/sh\n[ "$1" = prepared ] && cat >>.git/seen\nexit 0\n')
    saved(gated, "pre-push", "#!/bin/sh\ncat >.git/pushed\n")
    assert gated.commit("src/cart/x") is None
    seen = (gated.root / ".git/seen").read_text().splitlines()
    assert any(line.endswith(" refs/heads/main") for line in seen)
    assert all(len(line.split(" ")) == 3 for line in seen)
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "server")], check=True, env=ENV)
    gated.git("push", "-q", str(tmp_path / "server"), "main")
    assert (gated.root / ".git/pushed").read_text().startswith("refs/heads/main ")


def test_we_do_not_call_pre_commit_when_it_calls_us(gated: Gated) -> None:
    gated.orders(CART)
    text = (gated.root / ".git/hooks/pre-commit").read_text()
    gated.hook("pre-commit.legacy", text, ()).write_text(text)
    theirs = (
        '#!/bin/sh\n# File generated by pre-commit: https://pre-commit.com\necho x >>.git/ran\nexec "$0.legacy" "$@"\n'
    )
    gated.hook("pre-commit", theirs.replace("$0.legacy", "$(dirname $0)/pre-commit.legacy"))
    saved(gated, "pre-commit", theirs)
    assert gated.commit("src/cart/x") is None
    assert (gated.root / ".git/ran").read_text() == "x\n"
    assert "Shapeup-Order: cart/core-r1-a1" in gated.message()
    assert gated.accepts()


def test_a_manager_between_git_and_us_changes_nothing(quick: Gated) -> None:
    quick.orders(CART)
    folder = quick.root / ".git/shapeupd/hooks"
    folder.mkdir()
    quick.install(HOOKS, python=NOWHERE, root="../../..")
    for hook in HOOKS:
        os.rename(quick.root / ".git/hooks" / hook, folder / hook)
        quick.hook(
            hook, f'#!/bin/sh\nsh -c \'"$@"\' x "$(git rev-parse --git-common-dir)/shapeupd/hooks/{hook}" "$@"\n'
        )
    assert quick.commit("src/cart/x") is None
    assert quick.accepts() == [f"{quick.git('rev-parse', 'HEAD')} cart/core-r1-a1"]


def test_detached_and_packed_heads_are_noted(quick: Gated) -> None:
    quick.orders(CART)
    quick.git("checkout", "-q", "--detach")
    assert quick.commit("src/cart/x") is None
    quick.git("checkout", "-q", "-B", "packed")
    quick.git("pack-refs", "--all")
    assert quick.commit("src/cart/y") is None
    assert quick.accepts() == [f"{quick.git('rev-parse', at)} cart/core-r1-a1" for at in ("HEAD^", "HEAD")]


def test_paths_with_blanks_and_quotes_hurt_nothing(tmp_path: Path, shell: tuple[str, ...]) -> None:
    gated = Gated(tmp_path / "a re'po $x", shell, ())
    gated.install(HOOKS, main=str(tmp_path / "no where's"))
    gated.orders(CART)
    assert gated.commit("src/cart/x") is None
    assert "cannot be run" in (gated.commit("docs/x") or "")


def test_the_canary_is_refused_where_no_order_lives(gated: Gated) -> None:
    gated.write(".shapeup/keep")
    said = gated.commit(".shapeup/canary", SHAPEUPD_CANARY="1")
    assert said is not None
    assert "R-37" in said


def test_the_index_is_left_as_it_was(gated: Gated) -> None:
    gated.orders(CART)
    gated.stage("docs/x")
    gated.git("status")
    before = (gated.root / ".git/index").read_bytes()
    for hook in ("pre-commit", "pre-merge-commit"):
        done = subprocess.run(
            [str(gated.root / ".git/hooks" / hook)], cwd=gated.root, env=ENV, capture_output=True, check=False
        )
        assert done.returncode == 1
    assert (gated.root / ".git/index").read_bytes() == before


def test_no_placeholder_is_left_when_three_are_filled() -> None:
    stub_text = fill_stub()
    assert "@PYTHON@" not in stub_text
    assert "@MAIN@" not in stub_text
    assert "@ROOT@" not in stub_text


def test_a_live_order_is_stamped_rather_than_an_answered_one_that_covers_it_too(gated: Gated) -> None:
    gated.orders(CART._replace(order_id="cart/done-r1-a1", answered=True), CART)
    assert gated.commit("src/cart/x") is None
    assert "Shapeup-Order: cart/core-r1-a1" in gated.message()


def test_an_answered_order_is_stamped_where_no_live_one_covers_the_change(gated: Gated) -> None:
    other = CART._replace(order_id="cart/other-r1-a1", allowed=("lib/**",))
    gated.orders(CART._replace(order_id="cart/done-r1-a1", answered=True), other)
    assert gated.commit("src/cart/x") is None
    assert "Shapeup-Order: cart/done-r1-a1\nShapeup-Operation: execute" in gated.message()


def test_a_shell_that_was_told_to_fold_case_lets_nothing_more_pass(gated: Gated) -> None:
    gated.orders(CART)
    assert gated.commit("SRC/cart/x", BASHOPTS="nocasematch") is not None
    assert gated.commit("src/cart/x", BASHOPTS="nocasematch") is not None  # SRC/cart/x is staged still
    gated.git("reset", "-q", "SRC")
    assert gated.commit("src/cart/x", BASHOPTS="nocasematch") is None


def test_the_canary_calls_nobody_elses_hook(gated: Gated) -> None:
    gated.hook("pre-commit.shapeupd-saved", f"#!/bin/sh\ntouch {gated.root}/called\n")
    gated.orders(CART)
    assert gated.commit("src/cart/x", SHAPEUPD_CANARY="1") is None
    assert not (gated.root / "called").exists()
    assert gated.commit("src/cart/y") is None
    assert (gated.root / "called").exists()


@pytest.mark.parametrize("with_lines", [True, False])
def test_what_people_may_always_write_is_stamped_with_no_order(gated: Gated, with_lines: bool) -> None:
    policy = Policy("digest", (CART,), human_globs=("docs/**",), has_open_run=True)
    gated.orders(CART, policy=policy)
    if not with_lines:
        (gated.root / ".shapeup/policy.paths").unlink()
    for paths in (("docs/x",), ("docs/y", "src/cart/y")):
        assert gated.commit(*paths) is None
        assert "Shapeup" not in gated.message()


@pytest.mark.parametrize("form", ["-a", "docs/old"])
def test_the_way_forward_after_commit_a_works_as_printed(gated: Gated, form: str) -> None:
    gated.write("docs/old")
    gated.write("src/cart/old")
    gated.git("add", ".")
    gated.git("commit", "-qm", "before")
    gated.orders(CART)
    gated.write("docs/old", "changed\n")
    gated.write("src/cart/old", "changed\n")
    said = gated.commit(args=(form,))
    assert said is not None
    (fix,) = [line.removeprefix("  fix: ") for line in said.splitlines() if line.startswith("  fix: ")]
    subprocess.run(["sh", "-c", fix], cwd=gated.root, env=ENV, check=True, capture_output=True)
    assert gated.commit(args=("-a",)) is None
    assert gated.git("stash", "show", "--name-only") == "docs/old"


def test_an_override_opens_everything_but_the_local_tier(gated: Gated) -> None:
    gated.orders(CART)
    gated.git("add", "-f", ".shapeup/policy.json")
    said = gated.commit("docs/x", SHAPEUP_OVERRIDE="because")
    assert said is not None
    assert "SHAPEUP_OVERRIDE" not in said
