"""Both readers of history agree, whatever the repository; where pygit2 cannot go, the command line goes alone. Source: targets 16, 17, 23."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.commits.command_line import CommandLine
from daemon.git import OpenGit, open_pygit2
from hooks.git import GitFailed, scrubbed_env

ENV = {
    **scrubbed_env(),
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


def git(root, *words, stdin=None, at=None, **env):
    if at is not None:
        env |= {"GIT_AUTHOR_DATE": f"{at} +0000", "GIT_COMMITTER_DATE": f"{at} +0000"}
    done = subprocess.run(
        ["git", "-C", os.fspath(root), *words], input=stdin, capture_output=True, env=ENV | env, check=False
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode(errors="surrogateescape").strip()


@pytest.fixture
def root(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    return tmp_path


def commit(root, message="work", at=1_700_000_000, **files):
    for name, text in files.items():
        target = root / name.replace("__", "/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message, at=at)
    return git(root, "rev-parse", "HEAD")


def both(root):
    common = Path(git(root, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    fast = open_pygit2(common)
    assert fast is not None
    return CommandLine(common), fast


def assert_agreement(root, *, paths=(b"a", b"d/e", b"nowhere")):
    """Every question of the Protocol, asked of both."""
    slow, fast = both(root)
    refs = slow.refs()
    assert fast.refs() == refs
    assert fast.tags() == slow.tags()
    tips = sorted(refs.tips.values())
    steps = slow.walk(tips, ())
    for hidden in ((), tips[:1], [steps[0].id] if steps else ()):
        for since in (None, 1_700_000_050):
            theirs, ours = slow.walk(tips, hidden, since), fast.walk(tips, hidden, since)
            assert set(ours) == set(theirs), (hidden, since)
            assert len(ours) == len(theirs)
            assert_parents_first(ours)
            assert_parents_first(theirs)
    ids = [step.id for step in steps]
    commits = slow.read(ids)
    assert fast.read(ids) == commits
    assert [found.id for found in commits] == ids
    for found in commits:
        assert fast.author(found.id) == slow.author(found.id)
        for change in found.changes:
            for blob in (change.old_blob, change.new_blob):
                assert fast.blob(blob) == slow.blob(blob)
    for path in paths:
        name = os.fsdecode(path)
        assert fast.entries(ids, name) == slow.entries(ids, name)
        for tip in tips:
            assert fast.touches(tip, path, 20) == slow.touches(tip, path, 20)
    fast.close()
    return commits


def assert_parents_first(steps):
    places = {step.id: number for number, step in enumerate(steps)}
    assert all(places.get(parent, -1) < places[step.id] for step in steps for parent in step.parents)


def test_an_unborn_repository_has_no_tips(root):
    assert assert_agreement(root) == ()


def test_worktrees_detached_heads_tags_remotes_and_packed_refs(root, tmp_path_factory):
    first = commit(root, "one", a="1", d__e="1")
    git(root, "tag", "-a", "-m", "v1", "v1")
    git(root, "tag", "light")
    git(root, "update-ref", "refs/remotes/origin/main", first)
    git(root, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    second = commit(root, "two", at=1_700_000_100, a="2")
    linked = tmp_path_factory.mktemp("linked")
    git(root, "worktree", "add", "-q", "--detach", linked / "detached", first)
    git(root, "worktree", "add", "-q", "-b", "side/way", linked / "side")
    git(root, "worktree", "add", "-q", "-b", "unborn", linked / "unborn")
    git(linked / "unborn", "checkout", "-q", "--orphan", "nothing-yet")
    git(root, "pack-refs", "--all")
    third = commit(linked / "side", "three", at=1_700_000_200, b="3")
    assert_agreement(root)
    refs = both(linked / "side")[0].refs()
    assert refs.tips["refs/heads/side/way"] == refs.tips["worktrees/side/HEAD"] == third
    assert refs.tips["refs/heads/main"] == refs.tips["refs/heads/alias"] == refs.tips["HEAD"] == second
    assert refs.tips["worktrees/detached/HEAD"] == first
    assert "worktrees/unborn/HEAD" not in refs.tips
    assert refs.remotes == {first}
    assert both(root)[1].tags() == {first}


def test_a_merge_changes_what_differs_from_every_parent(root):
    commit(root, "base", a="0", b="0", c="0")
    for number, name in enumerate(("one", "two")):
        git(root, "checkout", "-q", "-b", name, "main")
        commit(root, name, at=1_700_000_010 + number, **{name: "new", "a": name})
    git(root, "checkout", "-q", "main")
    commit(root, "main", at=1_700_000_020, main="new")
    git(root, "merge", "-q", "--no-commit", "-s", "ours", "one", "two", at=1_700_000_030)
    (root / "a").write_text("resolved")
    (root / "slipped in").write_text("by the merge")
    (root / "b").unlink()
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "octopus", at=1_700_000_030)
    octopus = assert_agreement(root)[-1]
    assert len(octopus.parents) == 3
    found = {change.path: change.status for change in octopus.changes}
    assert found == {b"a": "M", b"b": "D", b"slipped in": "A"}
    assert len(octopus.others) == 3
    assert all(len(rest) == 2 for rest in octopus.others)


def test_links_submodules_modes_types_and_odd_names(root):
    commit(root, "one", a="1", link="x", d__e="1", run="#!", Straße="ß")
    (root / "link").unlink()
    (root / "link").symlink_to("a")
    (root / "run").chmod(0o755)
    shutil.rmtree(root / "d")
    (root / "d").write_text("a file where a folder was")
    for name in (b"not utf-8 \xff", b"new\nline", b'quote"back\\slash', b"A"):
        (root / os.fsdecode(name)).write_text("odd")
    commit(root, "two", at=1_700_000_010)
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{'2' * 40},run")
    git(root, "commit", "-q", "-m", "three", at=1_700_000_020)
    git(root, "config", "core.ignorecase", "true")
    git(root, "config", "diff.ignoreSubmodules", "all")
    git(root, "config", "diff.renames", "copies")
    git(root, "config", "core.quotepath", "true")
    _, two, three = assert_agreement(root, paths=(b"a", b"A", b"link", b"run", b"d", b"d/e", b"not utf-8 \xff"))
    assert [(change.path, change.status) for change in three.changes] == [(b"module", "A"), (b"run", "T")]
    kinds = {change.path: change.status for change in two.changes}
    assert kinds[b"link"] == "T"
    assert kinds[b"d/e"] == "D"
    assert kinds[b"not utf-8 \xff"] == "A"


def test_messages_and_authors_are_what_the_commit_says(root):
    commit(root, "one", a="1")
    git(
        root,
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "subject\n\nbody\n\nShapeup-Order: cart/a-r1-a1",
        GIT_AUTHOR_NAME="Zoë <x",
    )
    git(root, "config", "i18n.commitEncoding", "ISO-8859-1")
    git(root, "commit", "-q", "--allow-empty", "-F", "-", stdin="grüße".encode("latin-1"))
    tree = git(root, "rev-parse", "HEAD^{tree}")
    raw = f"tree {tree}\nauthor nobody\ncommitter nobody <> 99999999999999999999 +0000\n\nodd\n".encode()
    odd = git(root, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=raw)
    commits = assert_agreement(root)
    assert "grüße".encode() in {found.message.strip() for found in commits}
    assert OpenGit(root / ".git").read([odd])[0].changes


def test_replacements_and_grafts_hide_nothing(root):
    first = commit(root, "one", a="1")
    bad = commit(root, "bad", at=1_700_000_010, bad="1")
    good = git(root, "commit-tree", "-p", first, "-m", "good", f"{first}^{{tree}}", at=1_700_000_010)
    git(root, "replace", bad, good)
    assert [change.path for change in assert_agreement(root)[-1].changes] == [b"bad"]
    (root / ".git" / "info" / "grafts").write_text(f"{bad}\n")
    common = root / ".git"
    assert open_pygit2(common) is None
    assert [step.id for step in OpenGit(common).walk([bad], ())] == [first, bad]


def test_what_is_gone_or_no_commit_is_left_out(root):
    first = commit(root, "one", a="1")
    blob, absent = git(root, "rev-parse", "HEAD:a"), "7" * 40
    (root / ".git" / "refs" / "heads" / "broken").write_text(absent + "\n")
    (root / ".git" / "refs" / "heads" / "empty").write_text("")
    for reader in both(root):
        assert set(reader.refs().tips) == {"refs/heads/main", "HEAD"}
        assert [step.id for step in reader.walk([first], [absent])] == [first]
        assert reader.read([absent, first])[0].id == first
        assert reader.read([absent]) == reader.walk([absent], ()) == reader.touches(absent, b"a", 5) == ()
        assert reader.author(absent) == b""
        assert reader.blob(absent) is None
        assert reader.blob(first) is None
        assert reader.entries([first], "nowhere") == ("",)
        assert reader.entries([first], "a") == (blob,)


def test_a_sha256_repository_is_read_by_the_command_line(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256")
    first = commit(tmp_path, "one", a="1")
    second = commit(tmp_path, "two", at=1_700_000_010, a="2")
    common = tmp_path / ".git"
    assert open_pygit2(common) is None
    opened = OpenGit(common)
    assert opened.refs().tips == {"refs/heads/main": second, "HEAD": second}
    assert [step.id for step in opened.walk([second], [first])] == [second]
    (change,) = opened.read([second])[0].changes
    assert (change.path, change.status, opened.blob(change.new_blob)) == (b"a", "M", b"2")
    assert len(opened.touches(second, b"a", 5)) == 2


@pytest.mark.parametrize("spoil", ["partialclone", "unknown", "reftable"])
def test_an_extension_that_pygit2_might_misread_is_left_to_git(root, spoil):
    commit(root, "one", a="1")
    if spoil == "reftable":
        (root / ".git" / "reftable").mkdir()
    else:
        git(root, "config", "core.repositoryformatversion", "1")
        git(root, "config", f"extensions.{spoil}", "origin")
    assert open_pygit2(root / ".git") is None


def test_worktree_config_is_no_obstacle(root):
    commit(root, "one", a="1")
    git(root, "config", "core.repositoryformatversion", "1")
    git(root, "config", "extensions.worktreeConfig", "true")
    assert_agreement(root)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_another_owner_is_read_without_trusting_it(root):
    tip = commit(root, "one", a="1")
    for path in (root, *root.rglob("*")):
        os.chown(path, 12345, 12345)
    common = root / ".git"
    assert open_pygit2(common) is None
    assert OpenGit(common).refs().tips["refs/heads/main"] == tip
    assert OpenGit(common).read([tip])[0].subject == "one"


def test_what_pygit2_stumbles_over_is_asked_of_git(root):
    tip = commit(root, "one", a="1")
    opened = OpenGit(root / ".git")
    assert opened.read([tip])
    assert opened.author("HEAD").startswith(b"Ada")  # pygit2 takes ids only
    with pytest.raises(GitFailed):
        opened.walk(["--no-such-option"], ())


FILES = ("a", "b", "d/e", "d/f", "D/e")
MODES = ("100644", "100755", "120000")
EXAMPLES = int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "25"))


@st.composite
def histories(draw):
    """A fast-import stream: commits with up to three parents, files written, relinked and removed."""
    lines = []
    for mark in range(1, draw(st.integers(1, 8)) + 1):
        parents = draw(st.lists(st.integers(1, mark - 1), max_size=3, unique=True)) if mark > 1 else []
        branch = draw(st.sampled_from(("main", "side")))
        at = 1_700_000_000 + draw(st.integers(0, 100))
        lines += ["reset refs/heads/" + branch, "", f"commit refs/heads/{branch}", f"mark :{mark}"]
        lines += [f"committer Ada <ada@example.org> {at} +0000", "data 4", "work"]
        lines += [f"from :{parent}" for parent in parents[:1]] + [f"merge :{parent}" for parent in parents[1:]]
        for name in draw(st.lists(st.sampled_from(FILES), max_size=4, unique=True)):
            if draw(st.booleans()):
                lines += [f"M {draw(st.sampled_from(MODES))} inline {name}", "data 1", draw(st.sampled_from("xyz"))]
            else:
                lines.append(f"D {name}")
    return "\n".join((*lines, ""))


@settings(max_examples=min(EXAMPLES, 500), deadline=None)
@given(history=histories())
def test_both_agree_on_generated_histories(tmp_path_factory, history):
    root = tmp_path_factory.mktemp("generated")
    git(root, "init", "-q", "-b", "main")
    git(root, "fast-import", "--quiet", "--force", stdin=history.encode())
    assert_agreement(root, paths=(b"a", b"d", b"d/e"))
    shutil.rmtree(root)
