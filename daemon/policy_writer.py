"""Keeps `.shapeup/policy.json` and `policy.paths` in step with the live orders, so that hooks need no daemon. Source: design §4, E1.

Both files bear the change time of the newest file they depend on, as it was before that file was read: a hook sees by
`-nt` that an order came later than the policy, whether or not a daemon lives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from daemon import clock
from daemon.disk import DiskTree
from daemon.log import Log
from daemon.place import Place
from daemon.policy_on_disk import gate_settings, with_broken, written_policy
from daemon.run_orders import newest_input_ns, orders_folders_ns
from daemon.scan import Fingerprint, fingerprint
from daemon.writes import replace_file
from hooks.shell_policy import render_shell_policy
from parsers.faults import render_fault
from parsers.layout import folder_of, path_of
from parsers.policy_file import Policy, render_policy
from parsers.settings import Settings
from parsers.tree import Unreadable
from reducers.live_contracts import RunOrders
from reducers.policy import derive_policy

ANSWERS_S = 0.2  # an answer only lifts a freeze: it may wait for others
REST = 5  # times the cost of one writing, before the next: with thousands of orders it takes a tenth of a second
TICK_S = 1.0
FILES = ("policy", "policy-paths")


class PolicyWriter:
    """The policy of one repository. Used by the loop alone: `note` what changed, then `write` when it is due."""

    def __init__(self, place: Place, runs: Callable[[], Mapping[str, RunOrders]], log: Log) -> None:
        self._place = place
        self._runs = runs
        self._log = log
        self._settings: Settings | None = None
        self._head: tuple[Fingerprint | None, ...] = ()
        self._inputs_ns = 0
        self._due_at: float | None = None
        self._rested_at = 0.0
        self._ticked_at = float("-inf")
        self._own: dict[str, Fingerprint | None] = {}
        self._trouble = ""
        self.policy = Policy("")

    def note_orders(self) -> None:
        """Orders, a receipt or a run's state are about to be read: called before, so that what changes later is newer."""
        self._inputs_ns = newest_input_ns(self._place.root)
        self._due_at = 0.0

    def note_admissions(self) -> None:
        """Orders that were read before are admitted now, or not any more."""
        self._due_at = 0.0

    def note_answers(self, at: float) -> None:
        """Results were settled."""
        if self._due_at is None:
            self._due_at = at + ANSWERS_S

    @property
    def due_at(self) -> float | None:
        """When `write` has something to do; None: nothing. Until then hooks find the policy stale, and look themselves."""
        return None if self._due_at is None else max(self._due_at, self._rested_at)

    def tick(self, at: float) -> None:
        """Once a second: has HEAD moved (its settings count), or has somebody else written the policy or touched a folder?"""
        if at - self._ticked_at < TICK_S:
            return
        self._ticked_at = at
        head = self._head_stamp()
        if head != self._head:
            self._head, self._settings, self._due_at = head, None, 0.0
        for kind, own in self._own.items():
            if fingerprint(self._place.root / path_of(kind)) != own:
                self._due_at = 0.0
                self._log.write(
                    "writer.foreign", level="warn", subject=path_of(kind), note="written anew from the orders"
                )
                self._own[kind] = None
        if self._own and orders_folders_ns(self._place.root) > self._inputs_ns:
            self.note_orders()

    def write(self, at: float | None = None) -> None:
        """Bring both files up to date, where it is due by then; None: now, whenever it is due."""
        if self.due_at is None or (at is not None and at < self.due_at):
            return
        began = clock.monotonic()
        self._write()
        self._due_at, ended = None, clock.monotonic()
        self._rested_at = ended + REST * (ended - began)

    def _write(self) -> None:
        """Write what differs; nothing where no order lies and none ever did."""
        runs = self._runs()
        tree = DiskTree(self._place.root)
        before = self.policy if self.policy.orders_digest else written_policy(tree)
        self.policy = with_broken(derive_policy(runs, self._gate()), tree, before)
        if (
            not self.policy.contracts
            and not any(run.orders for run in runs.values())
            and not any(tree.list(folder_of("order", slug)) for slug in runs)
            and tree.stamp(path_of("policy")) is None
        ):
            return
        texts = {"policy": render_policy(self.policy), "policy-paths": render_shell_policy(self.policy)}
        try:
            for kind in FILES:
                self._write_one(tree, kind, texts[kind].encode())
        except (OSError, Unreadable) as error:
            self._say(error)
        else:
            self._trouble = ""

    def _write_one(self, tree: DiskTree, kind: str, content: bytes) -> None:
        path = path_of(kind)
        data, stamp = tree.read_stamped(path)
        if data != content or stamp is None or stamp.mtime_ns != self._inputs_ns:
            replace_file(self._place.root, path, content, mtime_ns=self._inputs_ns)
        self._own[kind] = tree.stamp(path)

    def _say(self, error: OSError | Unreadable) -> None:
        """Said once: until the next success hooks work by what they find themselves."""
        code = error.fault.code if isinstance(error, Unreadable) else "E-IO"
        text = render_fault(error.fault) if isinstance(error, Unreadable) else f"the policy cannot be written: {error}"
        if text != self._trouble:
            self._log.write("daemon.error", level="error", subject=path_of("policy"), code=code, error=text)
        self._trouble = text

    def _gate(self) -> Settings:
        if self._settings is None:
            self._settings = gate_settings(self._place)
        return self._settings

    def _head_stamp(self) -> tuple[Fingerprint | None, ...]:
        git_dir = self._place.git_dir
        names = ("HEAD", "logs/HEAD") if git_dir else ()
        return tuple(fingerprint(git_dir / name) for name in names if git_dir)
