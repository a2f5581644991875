"""Which commits a wall has let pass, and since when orders are live: what limits the way back. Source: rulings E6, E15.

Light module: standard library only.
"""

from __future__ import annotations

import os

from hooks.git import GitFailed, ask_git
from parsers.layout import path_of
from parsers.policy_file import Policy

ACCEPTS = "shapeupd/accepts"  # below the common git dir; lines `<commit> <order or ->`
READ_BYTES = 1 << 20  # of the end of each record
_PASSED = (b'"accepted"', b'"audited"', b'"overridden"')


def accepted_commits(root: str) -> frozenset[str]:
    """The newest commits of which it is recorded that they passed."""
    found = {line.split(b" ", 1)[0] for line in tail_of(os.path.join(common_dir(), ACCEPTS), READ_BYTES).split(b"\n")}
    for row in tail_of(os.path.join(root, path_of("commits")), READ_BYTES).split(b"\n"):
        if any(word in row for word in _PASSED) and b'"commit"' in row:
            found.add(row.partition(b'"commit"')[2].split(b'"', 2)[1])
    return frozenset(name.decode("ascii", "replace") for name in found)


def common_dir() -> str:
    """The folder that all worktrees share, as git writes it down in the folder of a linked one."""
    git_dir = os.environ.get("GIT_DIR") or ".git"
    if not os.path.isdir(git_dir):
        try:
            return os.fsdecode(ask_git("rev-parse", "--git-common-dir")).removesuffix("\n")
        except GitFailed:
            return git_dir
    try:
        with open(os.path.join(git_dir, "commondir"), encoding="utf-8", errors="surrogateescape") as file:
            return os.path.join(git_dir, file.read().strip())
    except OSError:
        return git_dir


def live_since_s(root: str, policy: Policy) -> int | None:
    """The second after the oldest constraining order landed: what was committed before it slipped past nobody. None: no such
    order can be found."""
    found = []
    for contract in policy.contracts:
        if contract.is_constraining:
            slug, _, stem = contract.order_id.partition("/")
            try:
                path = os.path.join(root, path_of("order", slug, stem))
                found.append(os.lstat(path).st_mtime_ns)
            except OSError:
                continue
    return min(found) // 1_000_000_000 + 1 if found else None


def tail_of(path: str | os.PathLike[str], most: int) -> bytes:
    """The last bytes of a file, from the start of a line on; empty where no plain file is. A link is not followed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        start = max(0, os.fstat(fd).st_size - most)
        data = os.pread(fd, most, start)
    except OSError:
        return b""  # a folder or a pipe
    finally:
        os.close(fd)
    return data if start == 0 else data.partition(b"\n")[2]
