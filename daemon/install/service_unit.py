"""The systemd unit of one repository: its name, its text, and where a user's unit lies. Source: design §6, targets 33, ruling E12.

The texts are the templates under `systemd/`; a wheel holds them as `daemon/units/`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from glob import escape, glob
from pwd import getpwuid
from typing import NamedTuple

import daemon
from hooks.install.disk_nodes import File, Link, Node, Strange, read_node
from hooks.install.joining import Look, Plan, Wanted
from hooks.install.record import Record
from parsers.faults import Fault

CODE = "E-SERVICE"
USER_UNIT = "shapeupd@.service"
SYSTEM_UNIT = "shapeupd-system@.service"
MODE = 0o644
MOST_BYTES = 255  # what systemd takes as a unit's name
AGAIN = "shapeupd install --service systemd"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.")


class Unit(NamedTuple):
    """The unit of a repository. `is_edited`: it was installed, and somebody wrote into it since."""

    path: str
    node: File
    is_edited: bool = False

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


def template(name: str) -> str:
    """The text of one template. Raises OSError where this shapeupd is incomplete."""
    package = os.path.dirname(os.path.abspath(daemon.__file__))
    for folder in (f"{package}/units", f"{os.path.dirname(package)}/systemd"):  # installed; in a checkout
        if os.path.exists(f"{folder}/{name}"):
            with open(f"{folder}/{name}", encoding="utf-8") as file:
                return file.read()
    raise FileNotFoundError(f"{package}/units/{name} is missing; install shapeupd again")


def render_unit(text: str, python: str, user: str = "") -> bytes | Fault:
    """A template, filled in: the interpreter that starts shapeupd, and the user that the system manager runs it as."""
    if any(character in "\"'\\" or not character.isprintable() for character in python):
        why = "systemd executes no path that holds quotes, backslashes or control characters"
        return Fault(CODE, python, "this shapeupd cannot be a service", why, "install shapeupd under a plain path")
    quoted = '"' + python.replace("%", "%%") + '"'
    return text.replace("=:@PYTHON@ ", f"=:{quoted} ").replace("=@USER@\n", f"={user}\n").encode()


def escape_path(path: str) -> str:
    """An absolute path as the instance of a unit, as `systemd-escape --path` writes it."""
    parts = [part for part in os.fsencode(path).split(b"/") if part]
    if not parts:
        return "-"
    told = "-".join("".join(chr(byte) if byte in _PLAIN else f"\\x{byte:02x}" for byte in part) for part in parts)
    return "\\x2e" + told[1:] if told.startswith(".") else told


def unit_name(root: str, name: str = USER_UNIT) -> str:
    """The name of the repository's own unit."""
    before, _, after = name.partition("@")
    return f"{before}@{escape_path(root)}{after}"


def unit_folder() -> str:
    """Where this user's own units lie."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return f"{base if os.path.isabs(base) else os.path.expanduser('~/.config')}/systemd/user"


def unit_of(root: str, python: str, record: Record | None) -> Unit | Fault:
    """The repository's unit as it should stand. `record`: what is installed by now."""
    name = unit_name(root)
    if len(name) > MOST_BYTES:
        why = f"it is named after the repository, and systemd takes {MOST_BYTES} bytes"
        return Fault(CODE, name, "the name of the unit is too long", why, "move the repository to a shorter path")
    data = render_unit(template(USER_UNIT), python)
    if isinstance(data, Fault):
        return data
    path = f"{unit_folder()}/{name}"
    now = read_node(path)
    entry = next((entry for entry in record.entries if entry.path == path), None) if record else None
    is_edited = entry is not None and now is not None and now != entry.before and not entry.holds(now)
    return Unit(path, File(data, MODE), is_edited and not (isinstance(now, File) and now.data == data))


def system_unit_of(root: str, python: str) -> bytes | Fault:
    """The unit by which the system's own manager runs shapeupd, as the owner of the repository."""
    owner = os.stat(root).st_uid
    try:
        user = getpwuid(owner).pw_name
    except KeyError:
        user = str(owner)
    return render_unit(template(SYSTEM_UNIT), python, user)


def units_in(record: Record | None) -> tuple[str, ...]:
    """The paths of the units that an earlier install put in."""
    recorded = (os.path.split(entry.path) for entry in record.entries) if record else ()
    prefix = USER_UNIT.partition("@")[0] + "@"
    return tuple(f"{at}/{name}" for at, name in recorded if at.endswith("/systemd/user") and name.startswith(prefix))


def plan_unit(unit: Unit, look: Look) -> Plan:
    """The unit in its place; a file that stood there is kept in the record and comes back with uninstall.

    It is recorded as a settings file: whoever writes into it has it.
    """
    fault = _in_the_way(unit, look(unit.path))
    if fault is not None:
        return Plan(faults=(fault,))
    return Plan((Wanted(unit.path, "settings", unit.node),))


def _in_the_way(unit: Unit, node: Node) -> Fault | None:
    if unit.is_edited:
        fix = f"move what is yours into a drop-in (`systemctl --user edit {quoted(unit.name)}`), remove the file, then `{AGAIN}`"
        return Fault(CODE, unit.path, "the unit was changed by someone", "to write it anew would lose that", fix)
    if isinstance(node, Link):
        why = "a link there is somebody's decision: to /dev/null it means that the unit is masked"
        return Fault(CODE, unit.path, f"it is a symbolic link to {node.target}", why, f"remove it, then `{AGAIN}`")
    if isinstance(node, Strange):
        return Fault(CODE, unit.path, f"it is {node.what}", "systemd reads no unit there", "move it away")
    return None


def enabling_links(path: str) -> list[str]:
    """The links by which systemd starts the unit at this path by itself."""
    folder, name = os.path.split(path)
    return sorted(link for link in glob(f"{escape(folder)}/*.wants/{escape(name)}") if os.path.islink(link))


def still_enabled(paths: Iterable[str], verb: str) -> Fault | None:
    """Why units of ours may not go yet; None where none of them is enabled. `verb`: what is to be done after that."""
    for path in paths:
        name = os.path.basename(path)
        if enabling_links(path):
            why = "systemd would go on running what it can no longer restart"
            fix = f"systemctl --user disable --now {quoted(name)}, then `shapeupd {verb}` again"
            return Fault(CODE, path, "the service is enabled", why, fix)
    return None


def start_command(unit: Unit) -> str:
    """The one command that makes systemd run the unit as it stands now. `enable` makes it read its files anew."""
    if enabling_links(unit.path):
        return f"systemctl --user daemon-reload && systemctl --user restart {quoted(unit.name)}"
    return f"systemctl --user enable --now {quoted(unit.name)}"


def quoted(name: str) -> str:
    """The unit's name as one word of a shell."""
    return f"'{name}'" if "\\" in name else name
