"""One path that a commit, an index or a working tree changes, and where its bytes come from. Source: targets 17, design §4.

Light module: standard library only.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

ABSENT_MODE = "000000"
SYMLINK_MODE = "120000"
GITLINK_MODE = "160000"


class PathChange(NamedTuple):
    """A line of `git diff --raw -z --no-renames`: a rename is a deletion and an addition.

    `path` is what git stores: raw bytes, `/` between folders. A mode is six octal digits, ABSENT_MODE where there is
    nothing. An object id is all zeros where there is nothing, or where git has not hashed the file yet (working tree).
    """

    status: str  # A, D, M or T (type change)
    path: bytes
    old_mode: str
    new_mode: str
    old_blob: str
    new_blob: str

    @property
    def name(self) -> str:
        """The path as text; bytes that are not UTF-8 are kept aside as half surrogates."""
        return self.path.decode("utf-8", "surrogateescape")


class Content(Protocol):
    """The bytes on both sides of a change, read when a rule asks for them."""

    def before(self, change: PathChange) -> bytes | None:
        """The file's bytes before; None where nothing was, or no file (a gitlink)."""

    def after(self, change: PathChange) -> bytes | None:
        """The file's bytes after, a symlink's target for a symlink; None where nothing is, or no file (a gitlink)."""
