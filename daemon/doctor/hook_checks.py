"""Whether the gate stands in every worktree: a canary commit in a scratch index must be refused by our rule. Source: cli §2, targets 24.

The canary never touches the repository: its index is a temporary file, its blob is the empty one, which git knows by
itself. Where another tool stands before our stub, the stub is run by itself: those tools move files of the working tree.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator

from daemon.doctor.checks import Check, red
from daemon.install.site import common_of, find_folder, is_tracked, strips, this_stub
from daemon.install.worktree_hooks import AGAIN, Way, run_with_status, way_of
from daemon.place import Place
from hooks.git import GitFailed, ask_git, run_git, scrubbed_env
from hooks.install.disk_nodes import File, read_node
from hooks.install.hooks_folder import settings_env
from hooks.install.ignoring import LOCAL_TIER, ignored_by
from hooks.install.joining import Look
from hooks.install.leaving import without_us
from hooks.install.repository import Repository, Unreadable, read_record
from hooks.install.stub_text import HOOKS, STRICT_HOOKS, Stub, quote_sh
from hooks.install.worktrees import Worktree, list_worktrees
from parsers.faults import Fault

NAMES = ("hooks folder", "installation", "gate", "stub", "local tier", "switched off")
CANARY = ".shapeup/shapeupd-canary"
RULE = "R-37"
OLDEST = (2, 36)  # `git hook run`, `worktree list -z`
_SWITCHES = {"husky": "HUSKY", "lefthook": "LEFTHOOK"}


def check_git(place: Place) -> Iterator[Check]:
    """git itself."""
    try:
        said = os.fsdecode(run_git("version", env=scrubbed_env()).out).strip()
    except FileNotFoundError:
        what = "git is not on the PATH, so everything about commits is off"
        yield Check("git", None if place.git_dir is None else False, what, "install git 2.36 or later")
        return
    numbers = [int(part) for part in said.split()[2].split(".")[:2] if part.isdigit()] if said else []
    if tuple(numbers) < OLDEST:
        yield Check("git", False, f"{said} is too old to be tested", "install git 2.36 or later")
    else:
        yield Check("git", True, said)


def check_hooks(place: Place) -> Iterator[Check]:
    """Everything that stands between a commit and the repository, in every worktree."""
    folder = find_folder(place)
    if isinstance(folder, Fault):
        yield red("hooks folder", folder)
    else:
        yield Check("hooks folder", True, folder.path)
    yield _check_record(place)
    try:
        trees = list_worktrees(os.fspath(place.root))
    except GitFailed as error:
        yield Check("gate", False, str(error), f"run `git -C {shlex.quote(os.fspath(place.root))} status` and heed it")
        return
    through: set[str] = set()
    for tree in trees:
        yield _check_gate(place, tree, through)
    yield _check_stub(place, trees)
    yield from _check_local_tier(place)
    yield _check_switches(through)


def _check_record(place: Place) -> Check:
    """Whether what install recorded still stands, byte for byte."""
    repository = Repository(os.fspath(place.root), common_of(place))
    try:
        record = read_record(repository)
    except Unreadable as damage:
        return red("installation", damage.fault)
    if record is None:
        return Check("installation", False, "nothing is installed here", AGAIN)
    look: Look = read_node
    changed = [entry for entry in record.entries if entry.kind != "settings" and not entry.holds(look(entry.path))]
    if changed:
        kept = without_us(record, look, strips()).kept
        named = ", ".join(os.path.relpath(entry.path, place.root) for entry in changed[:3])
        fix = next((fault.fix for fault in kept.values()), AGAIN)
        return Check("installation", False, f"changed since: {named}", fix)
    return Check("installation", True, f"{len(record.entries)} files as recorded{', strict' if record.strict else ''}")


def _check_gate(place: Place, tree: Worktree, through: set[str]) -> Check:
    """One worktree: every hook must lead to us, and the canary must be refused."""
    name = f"gate in {os.path.relpath(tree.path, place.root)}" if tree.path != os.fspath(place.root) else "gate"
    if not tree.is_there:
        return Check(name, None, f"off: {tree.path} is not there")
    common = common_of(place)
    for hook in HOOKS:
        way = way_of(tree.path, common, hook)
        if isinstance(way, Fault):
            return red(name, way)
        through.add(way.through)
    way = way_of(tree.path, common, "pre-commit")
    assert isinstance(way, Way)
    return _send_canary(name, tree.path, way)


def _send_canary(name: str, worktree: str, way: Way) -> Check:
    before = _state(worktree)
    with tempfile.TemporaryDirectory(prefix="shapeupd-canary-") as folder:
        env = _canary_env(worktree, f"{folder}/index")
        try:
            _stage_canary(worktree, env)
        except GitFailed as error:
            return Check(name, False, f"no scratch index: {error}", f"run `git -C {shlex.quote(worktree)} status`")
        words = ("git", "hook", "run", "pre-commit") if way.is_ours_first else (way.stub,)
        status, said = run_with_status(words, worktree, env)
    if _state(worktree) != before:
        return Check(name, False, "the canary changed HEAD or the index", f"{AGAIN}; then look at `git status`")
    if status is None:
        return Check(name, False, f"the pre-commit hook {said}", f"run `{way.stub}` by hand and see where it waits")
    if status == 0:
        return Check(name, False, f"{way.stub} let a file under .shapeup/ pass", AGAIN)
    if RULE not in said:
        first = next((line for line in said.splitlines() if line.strip()), "nothing")
        return Check(name, False, f"the canary was refused, but not by {RULE}; the hook said: {first}", AGAIN)
    via = "" if way.through == "git" else f" (called by {way.through})"
    return Check(name, True, f"a canary commit was refused by {RULE}{via}")


def _canary_env(worktree: str, index: str) -> dict[str, str]:
    kept = {key: value for key, value in settings_env().items() if not key.startswith("SHAPEUP_")}
    kept.pop("GIT_OPTIONAL_LOCKS")
    on = {switch: "1" for switch in _SWITCHES.values() if kept.get(switch) == "0"}  # told by a check of its own
    return {**kept, **on, "GIT_INDEX_FILE": index, "SHAPEUPD_CANARY": "1"}


def _stage_canary(worktree: str, env: dict[str, str]) -> None:
    """HEAD and one file more in the scratch index. Nothing is written to the object store."""
    if run_git("-C", worktree, "rev-parse", "--verify", "-q", "HEAD^{commit}", env=env).status == 0:
        ask_git("-C", worktree, "read-tree", "HEAD", env=env)
    blob = ask_git("-C", worktree, "hash-object", "--stdin", env=env).decode("ascii").strip()
    ask_git("-C", worktree, "update-index", "--add", "--cacheinfo", f"100644,{blob},{CANARY}", env=env)


def _state(worktree: str) -> tuple[bytes, object]:
    """What a commit would change: HEAD and the bytes of the index."""
    env = settings_env()
    head = run_git("-C", worktree, "rev-parse", "-q", "--verify", "HEAD", env=env).out
    path = run_git("-C", worktree, "rev-parse", "--git-path", "index", env=env).out
    return head, read_node(os.path.join(worktree, os.fsdecode(path).removesuffix("\n")))


def _check_stub(place: Place, trees: tuple[Worktree, ...]) -> Check:
    """Whether the stubs name an interpreter and a shapeupd that are there."""
    stub = this_stub()
    if isinstance(stub, Fault):
        return red("stub", stub)
    for tree in trees:
        for hook in (*HOOKS, *STRICT_HOOKS) if tree.is_there else ():
            way = way_of(tree.path, common_of(place), hook)
            node = read_node(way.stub) if isinstance(way, Way) else None
            if not isinstance(way, Way) or not isinstance(node, File):
                continue
            problem = _stub_problem(way.stub, node.data, stub)
            if problem is not None:
                return problem
    return Check("stub", True, f"they start {stub.python}")


def _stub_problem(path: str, data: bytes, stub: Stub) -> Check | None:
    for what, value in (("Python", stub.python), ("shapeupd", stub.main)):
        if not os.path.exists(value):
            return Check(
                "stub", False, f"the {what} it starts is gone: {value}", f"install shapeupd again, then {AGAIN}"
            )
        if quote_sh(value) not in data:
            dead = [word for word in _quoted_paths(data) if not os.path.exists(word)]
            named = f"starts {dead[0]}, which is gone" if dead else "starts another shapeupd than this one"
            return Check("stub", False, f"{path} {named}", f"{AGAIN} with the shapeupd that shall judge")
    return None


def _quoted_paths(data: bytes) -> list[str]:
    """The absolute paths that stand as whole words in the stub's assignments."""
    found = []
    for line in os.fsdecode(data).splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and name.isidentifier() and value.startswith("'/"):
            try:
                found += [word for word in shlex.split(value) if word.startswith("/")]
            except ValueError:
                continue
    return found


def _check_local_tier(place: Place) -> Iterator[Check]:
    root = os.fspath(place.root)
    if is_tracked(root, LOCAL_TIER.rstrip("/")):
        fix = f"git -C {shlex.quote(root)} rm -r --cached {LOCAL_TIER} && git commit"
        yield Check("local tier", False, f"git tracks files under {LOCAL_TIER}", fix)
    elif ignored_by(root, LOCAL_TIER + "probe") is None:
        yield Check("local tier", False, f"git does not ignore {LOCAL_TIER}", AGAIN)
    else:
        yield Check("local tier", True, f"{LOCAL_TIER} is ignored, and nothing of it is tracked")


def _check_switches(through: set[str]) -> Check:
    """A variable that turns off the tool by which our hook is called turns us off as well."""
    off = [name for tool, name in _SWITCHES.items() if tool in through and os.environ.get(name) in ("0", "false")]
    if off:
        what = f"{', '.join(f'{name}=0' for name in off)} is set here, and commits made so pass unjudged"
        return Check("switched off", False, what, f"unset {' '.join(off)}")
    return Check("switched off", True, "no variable turns the hooks off")
