"""A bare repository with the pre-receive hook: what it refuses, what it takes in, and that it leaves no trace. Source: targets 21."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hooks.history import ENV, History

CONTRACT = (
    "---\nscope_id: core\nallowed_file_substrate: [src/cart/**]\nshared_substrate: [src/shared.py]\n---\n# core\n"
)
ORDER = "Shapeup-Order: cart/core-r1-a1"
NEEDS = '[gate]\nrequire_trailer = ["refs/heads/shapeup/**"]\n'


class Site:
    """A server and a clone of it; `main` holds the scope contract."""

    def __init__(self, root: Path, *, settings: str = NEEDS, init: tuple[str, ...] = ()) -> None:
        self.server = root / "server.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", *init, str(self.server)], env=ENV, check=True)
        self.clone = History(root / "clone", *init)
        self.clone.write("shapeup/cart/scopes/core.md", CONTRACT)
        self.clone.write(".shapeupd.toml", settings)
        self.clone.write("src/cart/a", "a\n")
        self.clone.write("docs/guide", "guide\n")
        self.base = self.clone.commit("base")
        self.clone.git("remote", "add", "origin", str(self.server))
        hook = self.server / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -m daemon hook pre-receive\n')
        hook.chmod(0o755)
        self.must_take("main")

    def push(self, *refs: str, **env: str) -> subprocess.CompletedProcess[bytes]:
        return self.clone.try_git("push", "-q", "origin", *refs, **env)

    def must_take(self, *refs: str) -> None:
        done = self.push(*refs)
        assert done.returncode == 0, done.stderr.decode()

    def must_refuse(self, *refs: str) -> str:
        before = self.state()
        done = self.push(*refs)
        told = done.stderr.decode("utf-8", "replace")
        assert done.returncode != 0, told
        assert "Traceback" not in told
        assert "shapeupd: the push is refused" in told, told
        assert self.state() == before
        return told

    def state(self) -> dict[str, bytes]:
        """Every file of the server's repository."""
        return {
            os.fspath(path.relative_to(self.server)): path.read_bytes()
            for path in self.server.rglob("*")
            if path.is_file()
        }

    def holds(self, commit: str) -> bool:
        command = ["git", "cat-file", "-e", commit]
        return subprocess.run(command, cwd=self.server, env=ENV, capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Site(tmp_path_factory.mktemp("model")).server.parent


@pytest.fixture
def site(model: Path, tmp_path: Path) -> Site:
    """A copy of the one that was built, which is quicker than to build it."""
    copied = Site.__new__(Site)
    shutil.copytree(model, tmp_path / "site", symlinks=True)
    copied.server = tmp_path / "site" / "server.git"
    copied.clone = History.__new__(History)
    copied.clone.root = tmp_path / "site" / "clone"
    copied.clone.git("remote", "set-url", "origin", str(copied.server))
    copied.base = copied.clone.head
    return copied


def test_a_push_outside_the_order_is_refused_and_the_mended_one_is_taken_in(site: Site) -> None:
    site.clone.git("checkout", "-q", "-b", "work")
    site.clone.write("docs/guide", "mine\n")
    bad = site.clone.commit("both", ORDER, src__cart__a="b\n")
    told = site.must_refuse("work")
    assert "docs/guide: OUTSIDE" in told
    assert "src/cart/a" not in told
    assert bad[:12] in told
    assert "fix:" in told
    assert not site.holds(bad)
    site.clone.git("restore", "--source=HEAD^", "--staged", "--worktree", "--", "docs/guide")
    site.clone.git("commit", "-q", "--amend", "--no-edit")
    site.must_take("work")
    assert site.holds(site.clone.head)


def test_the_way_forward_that_a_refusal_prints_works(site: Site) -> None:
    site.clone.git("checkout", "-q", "-b", "work")
    site.clone.write("docs/new", "x\n")
    site.clone.commit("the tip", ORDER)
    told = site.must_refuse("work")
    fix = next(line.split("checked out: ", 1)[1] for line in told.splitlines() if "checked out: " in line)
    subprocess.run(["sh", "-ec", fix], cwd=site.clone.root, env=ENV, check=True, capture_output=True)
    site.must_take("work")


def test_the_way_forward_works_for_a_commit_inside_the_range_and_for_the_first_of_all(site: Site) -> None:
    site.clone.git("checkout", "-q", "-b", "work")
    bad = site.clone.commit("bad", ORDER, docs__new="x\n", src__cart__a="b\n")
    site.clone.commit("good", ORDER, src__cart__a="c\n")
    told = site.must_refuse("work")
    mend(site, bad, told)
    site.must_take("work")
    site.clone.git("checkout", "-q", "--orphan", "fresh")
    site.clone.git("rm", "-rqf", ".")
    root = site.clone.commit(
        "root", "Shapeup-Order: cart/map-scopes", docs__new="x\n", shapeup__cart__scopes__b_dot_md=CONTRACT
    )
    site.clone.commit("on top", ORDER)
    told = site.must_refuse("fresh")
    mend(site, root, told)
    told = site.must_refuse("fresh")
    assert "docs/new" not in told


def mend(site: Site, bad: str, told: str) -> None:
    """Do what the refusal says, with an editor that marks the commit."""
    fix = next(line.split("fix: ", 1)[1] for line in told.splitlines() if "rebase -i" in line)
    start, _, rest = fix.partition(f', mark {bad[:12]} as "edit", then ')
    editor = f"sed -i 's/^pick {bad[:7]}/edit {bad[:7]}/'"
    script = f"{start}\n{rest}"
    subprocess.run(
        ["sh", "-ec", script],
        cwd=site.clone.root,
        env=ENV | {"GIT_SEQUENCE_EDITOR": editor},
        check=True,
        capture_output=True,
    )


def test_a_commit_without_a_trailer_passes_where_no_ref_asks_for_one(site: Site) -> None:
    site.clone.commit("a person", docs__guide="mine\n")
    site.must_take("main")


def test_on_a_ref_of_agents_every_commit_must_name_its_order(site: Site) -> None:
    site.clone.git("checkout", "-q", "-b", "shapeup/core")
    site.clone.commit("silent", src__cart__a="b\n")
    told = site.must_refuse("shapeup/core")
    assert "TRAILER-MISSING" in told
    site.must_take("shapeup/core:refs/heads/people")
    site.clone.git("reset", "-q", "--hard", site.base)
    site.clone.commit("named", ORDER, src__cart__a="c\n")
    site.must_take("shapeup/core")


def test_a_clean_merge_from_the_base_needs_no_trailer_and_is_not_blamed_on_the_worker(site: Site) -> None:
    site.clone.git("checkout", "-q", "-b", "shapeup/core")
    site.clone.commit("mine", ORDER, src__cart__a="b\n")
    site.clone.git("checkout", "-q", "main")
    site.clone.commit("theirs", docs__guide="theirs\n")
    site.must_take("main")
    site.clone.git("checkout", "-q", "shapeup/core")
    site.clone.git("merge", "-q", "--no-ff", "-m", "merge", "main")
    site.must_take("shapeup/core")
    site.clone.git(
        "merge", "-q", "--no-ff", "--no-commit", site.clone.git("commit-tree", "-m", "x", "-p", "main", "main^{tree}")
    )
    site.clone.write("docs/evil", "x\n")
    site.clone.commit("an edit inside a merge", ORDER)
    assert "docs/evil: OUTSIDE" in site.must_refuse("shapeup/core")


def test_a_commit_that_edits_the_settings_is_judged_by_the_old_ones(site: Site) -> None:
    site.clone.git("checkout", "-q", "-b", "shapeup/core")
    site.clone.commit("free", _dot_shapeupd_dot_toml="[gate]\nrequire_trailer = []\n")
    assert "TRAILER-MISSING" in site.must_refuse("shapeup/core")
    site.clone.git("checkout", "-q", "main")
    site.clone.commit("free", _dot_shapeupd_dot_toml="[gate]\nrequire_trailer = []\n")
    site.must_take("main")
    site.clone.commit("silent", src__cart__a="b\n")
    site.must_take("main:shapeup/core")


def test_settings_that_do_not_parse_leave_those_of_the_default_branch(site: Site) -> None:
    site.clone.git("checkout", "-q", "-b", "shapeup/core")
    site.clone.commit("broken", _dot_shapeupd_dot_toml="[gate\nrequire_trailer\n")
    site.must_take("shapeup/core:people")
    subprocess.run(["git", "update-ref", "refs/heads/shapeup/core", "people"], cwd=site.server, env=ENV, check=True)
    site.clone.commit("silent", src__cart__a="b\n")
    told = site.must_refuse("shapeup/core")
    assert "not TOML" in told
    assert "TRAILER-MISSING" in told


@pytest.mark.parametrize(
    ("trailer", "said"),
    [
        ("Shapeup-Order: cart/nowhere-r1-a1", "names no scope contract"),
        ("Shapeup-Order: cart/r1-a1", "names no scope contract"),
        ("Shapeup-Order: other/core-r1-a1", "names no scope contract"),
        ("Shapeup-Order: nonsense", "is no order id"),
        ("Shapeup-Order: ../../etc/passwd", "is no order id"),
        ("Shapeup-Order: cart/smoke", "stands for no operation"),
        (f"{ORDER}\nShapeup-Operation: analyze", "stands for execute or fix or spike"),
        ("Shapeup-Order: cart/wire\nShapeup-Operation: analyze", "stands for wire"),
        ("Shapeup-Order: cart/smoke\nShapeup-Operation: everything", "stands for no operation"),
    ],
)
def test_a_trailer_that_cannot_be_resolved_is_refused(site: Site, trailer: str, said: str) -> None:
    site.clone.git("checkout", "-q", "-b", "work")
    site.clone.commit("x", trailer, src__cart__a="b\n")
    told = site.must_refuse("work")
    assert "TRAILER-UNKNOWN" in told
    assert said in told


@pytest.mark.parametrize(
    ("trailer", "path", "allowed"),
    [
        (f"{ORDER}\nShapeup-Operation: fix", "src/cart/b", True),
        (ORDER, "src/shared.py", True),
        (ORDER, "src/other", False),
        ("Shapeup-Order: cart/analyze", "shapeup/cart/spec/ux-behavior.md", True),
        ("Shapeup-Order: cart/analyze", "src/cart/a", False),
        ("Shapeup-Order: cart/coverage-r1", "shapeup/cart/requirements.md", True),
        ("Shapeup-Order: cart/coverage-r1", "shapeup/cart/spec/ux-behavior.md", False),
        ("Shapeup-Order: cart/coach", "shapeup/knowledge-base/task-executor.md", True),
        ("Shapeup-Order: cart/evaluate-r1", "shapeup/cart/spec/ux-behavior.md", False),
        ("Shapeup-Order: cart/plan-api\nShapeup-Operation: analyze", "shapeup/cart/spec/ux-behavior.md", True),
    ],
)
def test_an_order_is_held_to_the_template_of_its_operation(site: Site, trailer: str, path: str, allowed: bool) -> None:
    site.clone.git("checkout", "-q", "-b", "work")
    site.clone.write(path, "# text\n")
    site.clone.commit("x", trailer)
    (site.must_take if allowed else site.must_refuse)("work")


def test_the_contract_of_the_parent_counts_not_the_one_that_the_commit_brings(site: Site) -> None:
    site.clone.git("checkout", "-q", "-b", "work")
    site.clone.write("shapeup/cart/scopes/core.md", CONTRACT.replace("src/cart/**", "**"))
    site.clone.commit("wider", ORDER, docs__guide="mine\n")
    told = site.must_refuse("work")
    assert "docs/guide: OUTSIDE" in told
    assert "shapeup/cart/scopes/core.md" in told
    site.clone.git("reset", "-q", "--hard", site.base)
    site.clone.write("shapeup/cart/scopes/core.md", CONTRACT.replace("src/cart/**", "docs/**"))
    site.clone.commit("remapped", "Shapeup-Order: cart/map-scopes")
    site.clone.commit("by the new contract", ORDER, docs__guide="mine\n")
    site.must_take("work")


def test_scope_files_that_fold_to_one_stem_are_told_apart_or_refused(site: Site) -> None:
    site.clone.git("checkout", "-q", "-b", "work")
    site.clone.write("shapeup/cart/scopes/Big_UI.md", CONTRACT.replace("core", "Big_UI"))
    site.clone.commit("mapped", "Shapeup-Order: cart/map-scopes")
    site.clone.commit("built", "Shapeup-Order: cart/big-ui-r1-a1", src__cart__a="b\n")
    site.must_take("work")
    site.clone.write("shapeup/cart/scopes/big-ui.md", CONTRACT.replace("core", "big-ui"))
    site.clone.commit("mapped", "Shapeup-Order: cart/map-scopes")
    site.clone.commit("built", "Shapeup-Order: cart/big-ui-r1-a2", src__cart__a="c\n")
    told = site.must_refuse("work")
    assert "may mean Big_UI.md or big-ui.md" in told or "may mean Big_UI or big-ui" in told


def test_what_slipped_in_without_a_trailer_may_be_taken_back_under_an_order(site: Site) -> None:
    site.clone.commit("a person", docs__guide="slip\n", docs__new="slip\n")
    site.must_take("main")
    site.clone.git("checkout", "-q", "-b", "work")
    (site.clone.root / "docs" / "new").unlink()
    site.clone.commit("taken back", ORDER, docs__guide="guide\n")
    site.must_take("work")
    site.clone.commit("not a return", ORDER, docs__guide="other\n")
    site.must_refuse("work")


def test_nothing_under_the_local_tree_comes_in_whoever_pushes_it(site: Site) -> None:
    site.clone.git("checkout", "-q", "-b", "work")
    site.clone.write(".shapeup/cart/orders/core-r1-a1.json", "{}\n")
    site.clone.commit("x")
    assert "R-37" in site.must_refuse("work")


def test_deletions_of_refs_pass_and_judge_nothing(site: Site) -> None:
    site.must_take("main:gone", "main:stays")
    site.must_take(":gone")
    assert not (site.server / "refs/heads/gone").exists()


def test_a_new_branch_of_known_commits_passes_though_its_ref_asks_for_trailers(site: Site) -> None:
    site.must_take("main:refs/heads/shapeup/new")


@pytest.mark.parametrize(
    "ref", ["refs/tags/v1", "refs/tags/annotated", "refs/tags/nested", "refs/notes/x", "refs/shapeup/x"]
)
def test_commits_that_come_by_a_tag_or_any_other_ref_are_judged(site: Site, ref: str) -> None:
    site.clone.git("checkout", "-q", "--detach")
    bad = site.clone.commit("x", ORDER, docs__guide="mine\n")
    name = ref.rpartition("/")[2]
    if name == "annotated":
        site.clone.git("tag", "-a", "-m", "x", name, bad)
    elif name == "nested":
        site.clone.git("tag", "-a", "-m", "x", "inner", bad)
        site.clone.git("tag", "-a", "-m", "x", name, "inner")
    else:
        site.clone.git("update-ref", ref, bad)
    assert "docs/guide: OUTSIDE" in site.must_refuse(ref)


def test_tags_of_files_and_of_known_commits_pass(site: Site) -> None:
    site.clone.git("tag", "-a", "-m", "x", "known", site.base)
    site.clone.git("tag", "-a", "-m", "x", "file", "HEAD:src/cart/a")
    site.clone.git("tag", "tree", "HEAD^{tree}")
    site.must_take("refs/tags/known", "refs/tags/file", "refs/tags/tree")


def test_a_forced_update_is_judged_by_its_new_commits(site: Site) -> None:
    site.clone.git("checkout", "-q", "-b", "work")
    site.clone.commit("first", ORDER, src__cart__a="b\n")
    site.must_take("work")
    site.clone.git("reset", "-q", "--hard", site.base)
    site.clone.commit("other", ORDER, src__cart__a="c\n")
    site.must_take("+work")
    site.clone.git("reset", "-q", "--hard", site.base)
    site.clone.commit("bad", ORDER, docs__guide="mine\n")
    site.must_refuse("+work")


def test_fifty_refs_in_one_push_are_judged_together_and_by_their_own_settings(site: Site) -> None:
    refs = []
    for n in range(50):
        site.clone.git("checkout", "-q", "-b", f"b{n}", site.base)
        site.clone.commit(f"commit {n}", src__cart__a=f"{n}\n")
        refs.append(f"b{n}:refs/heads/{'shapeup/' if n == 49 else ''}b{n}")
    told = site.must_refuse(*refs)
    assert "1 of 50 new commits breaks a rule" in told
    assert site.clone.git("rev-parse", "b49")[:12] in told
    site.must_take(*refs[:49])


def test_a_replaced_commit_on_the_server_hides_nothing(site: Site) -> None:
    site.clone.git("checkout", "-q", "-b", "work")
    bad = site.clone.commit("bad", ORDER, docs__guide="mine\n")
    innocent = site.clone.git("commit-tree", "-m", "innocent", "-p", site.base, f"{site.base}^{{tree}}")
    site.clone.git("update-ref", f"refs/replace/{bad}", innocent)
    site.must_take(f"refs/replace/{bad}")
    assert "docs/guide: OUTSIDE" in site.must_refuse("work")


def test_an_override_passes_only_where_the_committed_settings_accept_it(tmp_path: Path) -> None:
    override = "Shapeup-Override: the build is on fire"
    closed = Site(tmp_path / "closed")
    closed.clone.git("checkout", "-q", "-b", "work")
    closed.clone.commit("x", ORDER, override, docs__guide="mine\n")
    told = closed.must_refuse("work")
    assert "OVERRIDE" in told
    assert "docs/guide: OUTSIDE" in told
    opened = Site(tmp_path / "open", settings=f"{NEEDS}accept_overrides = true\n")
    opened.clone.git("checkout", "-q", "-b", "shapeup/core")
    opened.clone.commit("x", override, docs__guide="mine\n")
    opened.must_take("shapeup/core")


def test_a_server_of_sha256_gives_the_same_verdicts(tmp_path: Path) -> None:
    site = Site(tmp_path, init=("--object-format=sha256",))
    site.clone.git("checkout", "-q", "-b", "work")
    site.clone.commit("good", ORDER, src__cart__a="b\n")
    site.must_take("work")
    site.clone.commit("bad", ORDER, docs__guide="mine\n")
    assert "docs/guide: OUTSIDE" in site.must_refuse("work")


def test_names_that_could_forge_a_line_are_quoted(site: Site) -> None:
    site.clone.git("checkout", "-q", "-b", "work")
    site.clone.write(b"docs/a\nshapeupd: fine\x1b[2J\xff", "x\n")
    site.clone.commit("x\x1b[2J", ORDER)
    told = site.must_refuse("work")
    assert "\x1b" not in told.replace("\x1b[K", "")
    assert 'docs/a\\nshapeupd: fine\\x1b[2J\\xff"' in told


def test_at_most_twenty_violations_are_listed_and_the_rest_is_counted(site: Site) -> None:
    site.clone.git("checkout", "-q", "-b", "work")
    for n in range(30):
        site.clone.write(f"docs/{n}", "x\n")
    site.clone.commit("x", ORDER)
    told = site.must_refuse("work")
    assert told.count("OUTSIDE") == 20
    assert "and 10 more" in told
    assert "shapeupd check --range" in told


def test_the_number_of_git_processes_does_not_grow_with_the_push(site: Site, tmp_path: Path) -> None:
    counts = []
    for commits, violates in ((1, False), (30, False), (1, True), (30, True)):
        site.clone.git("checkout", "-q", "-B", f"work-{commits}-{violates}", site.base)
        for n in range(commits):
            site.clone.commit(
                f"commit {n}", ORDER, **({"docs__guide": f"{n}\n"} if violates else {"src__cart__a": f"{n}\n"})
            )
        trace = tmp_path / f"trace-{commits}-{violates}"
        done = site.push("HEAD", GIT_TRACE2_EVENT=str(trace))
        assert (done.returncode != 0) == violates
        counts.append(trace.read_text().count('"event":"start"'))
    assert counts[0] == counts[1]
    assert counts[2] == counts[3]
    assert counts[2] <= counts[0] + 1


def test_the_hook_verb_knows_what_it_is_for(site: Site) -> None:
    def hook(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", "-m", "daemon", "hook", *words]
        return subprocess.run(command, cwd=site.server, env=ENV, input="", capture_output=True, text=True, check=False)

    assert hook("pre-receive").returncode == 0
    unknown = hook("post-nonsense")
    assert unknown.returncode == 2
    assert "is no hook that shapeupd knows" in unknown.stderr
    assert "exec shapeupd hook pre-receive" in hook("--help").stdout


def test_a_push_that_cannot_be_judged_is_refused_in_one_line(site: Site) -> None:
    hook = site.server / "hooks" / "pre-receive"
    hook.write_text(hook.read_text().replace("exec", f"echo {site.base} {'1' * 40} refs/heads/main | exec"))
    site.clone.commit("x", src__cart__a="b\n")
    done = site.push("main")
    assert done.returncode != 0
    assert b"cannot be judged" in done.stderr
    assert b"Traceback" not in done.stderr
