"""Whether systemd runs shapeupd here, after a logout too, and the kernel grants what it needs. Source: targets 33, hazards H, cli §2."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pwd import getpwuid

from daemon.doctor.checks import Check, red
from daemon.install.service_unit import AGAIN, Unit, enabling_links, quoted, start_command, unit_of, units_in
from daemon.install.site import common_of
from daemon.place import Place
from hooks.install.disk_nodes import File, read_node
from hooks.install.record import Record
from hooks.install.repository import Repository, Unreadable, read_record
from parsers.faults import Fault

INSTANCES = 4  # the two trees, the working tree, and one while a broken watch is replaced
LINGER = "/var/lib/systemd/linger"


def check_service(place: Place, linger: str = LINGER) -> Iterator[Check]:
    """The unit in its place and started at login; and that systemd lets this user's services live on."""
    unit = _unit(place)
    if isinstance(unit, Fault):
        yield red("service", unit)
        return
    if unit is None:
        yield Check("service", None, f"off: no systemd unit; `{AGAIN}` writes one")
        yield Check("linger", None, "off: no service of this user to keep alive")
        return
    yield _check_unit(unit)
    yield _check_linger(linger)


def _unit(place: Place) -> Unit | Fault | None:
    """The unit as it should stand; None where nobody asked for one."""
    record = _record(place)
    python = os.path.abspath(sys.executable)
    try:
        unit = unit_of(os.fspath(place.root), python, record)
    except OSError as error:
        return Fault("E-SERVICE", "shapeupd", str(error), "units are made from it", "install shapeupd again")
    if isinstance(unit, Fault):
        return unit if units_in(record) else None
    return unit if units_in(record) or os.path.lexists(unit.path) else None


def _record(place: Place) -> Record | None:
    if place.git_dir is None:
        return None
    try:
        return read_record(Repository(os.fspath(place.root), common_of(place)))
    except Unreadable:
        return None  # the check of the installation is red


def _check_unit(unit: Unit) -> Check:
    node = read_node(unit.path)
    if node is None:
        return Check("service", False, f"{unit.path} is gone", AGAIN)
    if unit.is_edited:
        fix = f"move what is yours into a drop-in (`systemctl --user edit {quoted(unit.name)}`), remove the file, then `{AGAIN}`"
        return Check("service", False, f"{unit.path} was changed since it was installed", fix)
    if not isinstance(node, File) or node.data != unit.node.data:
        what = f"{unit.path} is not what this shapeupd would write: it is of another version or place"
        return Check("service", False, what, f"{AGAIN}, then `{start_command(unit)}`")
    if not enabling_links(unit.path):
        return Check("service", False, f"{unit.name} is not enabled, so no login starts it", start_command(unit))
    return Check("service", True, f"{unit.name} is in place and enabled")


def _check_linger(folder: str) -> Check:
    """A user's services end with the last session unless the user lingers. Only told, never changed: it is the machine's affair."""
    if not os.path.isdir(os.path.dirname(folder)):
        return Check("linger", None, "off: no systemd-logind here")
    try:
        user = getpwuid(os.geteuid()).pw_name
    except KeyError:
        return Check("linger", None, "off: this user has no name, and logind knows only names")
    if os.path.exists(f"{folder}/{user}"):
        return Check("linger", True, f"services of {user} live on after the last logout")
    return Check("linger", False, f"services of {user} end with the last logout", f"loginctl enable-linger {user}")


def check_instances(limits: str = "/proc/sys/fs/inotify", processes: str = "/proc") -> Check:
    """Whether the kernel grants the queues that the daemon opens, beside those that this user's programs hold."""
    try:
        with open(f"{limits}/max_user_instances", encoding="ascii") as file:
            allowed = int(file.read())
    except (OSError, ValueError):
        return Check("inotify queues", None, "off: this kernel has no inotify")
    held = _queues_held(processes)
    what = f"{held} held by programs of this user, {allowed} allowed"
    if held + INSTANCES > allowed:
        fix = f"sudo sysctl fs.inotify.max_user_instances={max(512, allowed * 2)}"
        return Check("inotify queues", False, what, fix)
    return Check("inotify queues", True, what)


def _queues_held(processes: str) -> int:
    """How many inotify queues the processes of this user hold, as far as they let themselves be looked at."""
    held = 0
    for pid in filter(str.isdigit, os.listdir(processes)):
        try:
            if os.stat(f"{processes}/{pid}").st_uid != os.geteuid():
                continue
            held += sum(_is_queue(f"{processes}/{pid}/fd/{fd}") for fd in os.listdir(f"{processes}/{pid}/fd"))
        except OSError:
            continue  # it ended, or does not let us look
    return held


def _is_queue(link: str) -> bool:
    try:
        return os.readlink(link) == "anon_inode:inotify"
    except OSError:
        return False
