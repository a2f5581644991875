"""The kinds of change that the commit forms are crossed with: what lies in a case's folder before and after, as git stores it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

File = tuple[str, bytes]  # mode and data; of a gitlink the data is which of the donor's commits, b"0" or b"1"
Files = dict[bytes, File]


class Kind(NamedTuple):
    """One kind of change. Whatever stands in `before` or `after` is the whole of the case's folder."""

    name: str
    before: Files
    after: Files


def _text(word: str, mode: str = "100644") -> File:
    return mode, "".join(f"{word} {line}\n" for line in range(9)).encode()


def _link(target: str) -> File:
    return "120000", target.encode()


def _gitlink(number: int) -> File:
    return "160000", b"%d" % number


KEPT: Files = {b"kept": _text("kept")}

KINDS = (
    Kind("add", {}, {b"new": _text("new"), b"empty": ("100644", b"")}),
    Kind("modify", {b"f": _text("old")}, {b"f": _text("new")}),
    Kind("delete", {b"f": _text("gone")}, {}),
    Kind("rename", {b"f": _text("moved")}, {b"g": _text("moved")}),
    Kind("rename and edit", {b"f": _text("moved")}, {b"d/g": ("100644", _text("moved")[1] + b"more\n")}),
    Kind("copy", {b"f": _text("copied")}, {b"f": _text("copied"), b"g": _text("copied")}),
    Kind("exec bit on", {b"f": _text("x")}, {b"f": _text("x", "100755")}),
    Kind("exec bit off", {b"f": _text("x", "100755")}, {b"f": _text("x")}),
    Kind("symlink added", {}, {b"in": _link("kept"), b"out": _link("/etc/passwd"), b"dangling": _link("no/where")}),
    Kind("symlink retargeted", {b"l": _link("kept")}, {b"l": _link("../../../..")}),
    Kind("file to symlink", {b"f": _text("x")}, {b"f": _link("kept")}),
    Kind("symlink to file", {b"f": _link("kept")}, {b"f": _text("x")}),
    Kind("gitlink added", {}, {b"sub": _gitlink(0)}),
    Kind("gitlink moved", {b"sub": _gitlink(0)}, {b"sub": _gitlink(1)}),
    Kind("gitlink removed", {b"sub": _gitlink(0)}, {}),
    Kind("file to gitlink", {b"sub": _text("x")}, {b"sub": _gitlink(1)}),
    Kind("file to folder", {b"f": _text("x")}, {b"f/g": _text("y")}),
    Kind("folder to file", {b"f/g": _text("x"), b"f/h": _text("z")}, {b"f": _text("y")}),
    Kind("name not UTF-8", {b"\xff\xfe": _text("old")}, {b"\xff\xfe": _text("new"), b"caf\xe9/\x80": _text("x")}),
    Kind("newline and quote", {b'a\nb"c': _text("old")}, {b'a\nb"c': _text("new"), b"\\t\t'": _text("x")}),
    Kind("looks like magic", {b":(top)x": _text("old")}, {b":(top)x": _text("new"), b"-m": _text("x"), b"* ?": KEPT[b"kept"]}),
    Kind("nested", {b"a/b/c/d/e": _text("old")}, {b"a/b/c/d/e": _text("new"), b"a/b/x/y": _text("x")}),
    Kind("accents and case", {b"e\xcc\x81": _text("old")}, {b"e\xcc\x81": _text("n"), b"\xc3\xa9": _text("c"), b"KEPT": _text("K")}),
    Kind("many", {b"%03d" % n: _text("old") for n in range(0, 30, 2)}, {b"%03d" % n: _text("new") for n in range(0, 30, 3)}),
)  # fmt: skip


class Donor(NamedTuple):
    """A repository whose two commits the gitlinks stand at."""

    git_dir: Path
    commits: tuple[str, str]


def lay(folder: bytes, old: Files, new: Files, donor: Donor) -> None:
    """Make what lies in the folder `new`, where `old` lay. A gitlink becomes a nested repository at the donor's commit."""
    for name, file in old.items():
        if new.get(name) != file:
            _remove(folder, name)
    for name, (mode, data) in new.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        match mode:
            case "160000":
                _nested(path, donor.commits[int(data)], donor)
            case "120000":
                if not os.path.lexists(path):
                    os.symlink(data, path)
            case _:
                with open(path, "wb") as file:
                    file.write(data)
                os.chmod(path, int(mode[3:], 8))


def _remove(folder: bytes, name: bytes) -> None:
    path = os.path.join(folder, name)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
    above = os.path.dirname(path)
    while above != folder and os.path.isdir(above) and not os.listdir(above):
        os.rmdir(above)
        above = os.path.dirname(above)


def _nested(path: bytes, commit: str, donor: Donor) -> None:
    git_dir = os.path.join(path, b".git")
    if not os.path.isdir(git_dir):
        os.makedirs(os.path.join(git_dir, b"refs"))
        os.symlink(os.fsencode(donor.git_dir / "objects"), os.path.join(git_dir, b"objects"))
    with open(os.path.join(git_dir, b"HEAD"), "w") as head:
        head.write(commit + "\n")
