"""What the order in a commit's trailer lets it write, where no `.shapeup/` tells: the templates of §3.1 and the scope contract
that the commit's parent tree holds. Source: rulings E5, E11, protocol §2.4, §3.1.

Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable

from hooks.objects import Entry, Objects
from hooks.range.commits import Commit
from hooks.range.judge import Unresolved
from parsers.addresses import MAX_ORDER_ID, ORDER_ID, scope_stem, slug_of
from parsers.policy_file import Contract
from parsers.substrates import BUILD, TEMPLATES, StemMeaning, meaning_of, template_of

Globs = tuple[tuple[str, ...], tuple[str, ...]]


_REWORD = "reword the commit so that Shapeup-Order names the order it was made under, or drop the trailer"


class CommittedContracts:
    """Contracts by what is committed. `commits`: the range being judged; what it tells of trees is not asked again."""

    def __init__(self, objects: Objects, commits: Iterable[Commit]) -> None:
        self._objects = objects
        self._commits = {commit.id: commit for commit in commits}
        self._folders: dict[tuple[str, str], tuple[Entry, ...]] = {}
        self._globs: dict[str, Globs | Unresolved] = {}
        self._named: dict[tuple[str, str], StemMeaning | Unresolved] = {}
        self._contracts: dict[tuple[str, str, tuple[Entry, ...]], Contract | Unresolved] = {}

    def contract_for(self, commit: Commit, order_id: str, operation: str) -> Contract | Unresolved:
        """The contract of the order that the commit names; `operation` empty where it names none."""
        named = (order_id, operation)
        if named not in self._named:
            self._named[named] = _meaning(order_id, operation)
        meant = self._named[named]
        if isinstance(meant, Unresolved):
            return meant
        scopes = self._scopes_before(commit, slug_of(order_id)) if meant.operations[0] in BUILD else ()
        key = (order_id, operation, scopes)
        if key not in self._contracts:
            self._contracts[key] = self._resolve(order_id, meant, scopes)
        return self._contracts[key]

    def _resolve(self, order_id: str, meant: StemMeaning, scopes: tuple[Entry, ...]) -> Contract | Unresolved:
        slug = slug_of(order_id)
        if meant.operations[0] not in BUILD:
            return template_of(meant.operations[0], slug, order_id=order_id)
        globs = self._scope_globs(order_id, slug, meant.scope, scopes)
        return globs if isinstance(globs, Unresolved) else template_of(meant.operations[0], slug, None, globs, order_id)

    def _scope_globs(
        self, order_id: str, slug: str, scope: str | None, scopes: tuple[Entry, ...]
    ) -> Globs | Unresolved:
        folder = f"shapeup/{slug}/scopes"
        found = {name: entry for entry in scopes if (name := _base_name(entry)) and scope_stem(name) == scope}
        if len(found) == 1:
            ((name, entry),) = found.items()
            return self._contract_globs(entry, f"{folder}/{entry.name.decode()}")
        if found:
            what = f'"{order_id}" may mean {" or ".join(sorted(found))} in {folder}'
            return Unresolved(what, "stems fold case and signs, so scope ids may not differ in them alone", _REWORD)
        what = f'"{order_id}" names no scope contract of {folder} in the commit\'s parent'
        why = "where no order file tells, a build order takes its paths from the committed contract of its scope"
        return Unresolved(what, why, f"commit {folder}/{scope or '<scope>'}.md before it, or {_REWORD}")

    def _contract_globs(self, entry: Entry, where: str) -> Globs | Unresolved:
        if entry.id not in self._globs:
            self._globs[entry.id] = read_globs(entry.name, self._objects.own_blob(entry.id), where)
        return self._globs[entry.id]

    def _scopes_before(self, commit: Commit, slug: str) -> tuple[Entry, ...]:
        """The contract files in the trees of the commit's parents: the first parent's, then what only others have."""
        found: dict[bytes, Entry] = {}
        for parent in commit.parents:
            for entry in self._scopes_at(parent, slug):
                found.setdefault(entry.name, entry)
        return tuple(found.values())

    def _scopes_at(self, commit_id: str, slug: str) -> tuple[Entry, ...]:
        """The folder of contracts in a commit. A commit of the range that leaves it alone has its parent's."""
        passed = []
        at = commit_id
        prefix = f"shapeup/{slug}/scopes".encode()
        while (at, slug) not in self._folders:
            commit = self._commits.get(at)
            if commit is None or len(commit.parents) != 1 or _touches(commit, prefix):
                self._folders[at, slug] = _files(self._objects.tree(f"{at}:shapeup/{slug}/scopes") or ())
                break
            passed.append(at)
            at = commit.parents[0]
        for each in passed:
            self._folders[each, slug] = self._folders[at, slug]
        return self._folders[at, slug]


def _meaning(order_id: str, operation: str) -> StemMeaning | Unresolved:
    """The one operation that stem and trailer stand for together, and the scope of the stem."""
    if len(order_id) > MAX_ORDER_ID or not ORDER_ID.match(order_id):
        what = f"{order_id[:MAX_ORDER_ID]!a} is no order id"
        return Unresolved(what, "an order id is <feature>/<stem>, as the order file spells it", _REWORD)
    meant = meaning_of(order_id)
    if operation and operation not in (meant.operations or TEMPLATES):
        stands = " or ".join(meant.operations) or "no operation"
        what = f'Shapeup-Operation is {operation[:MAX_ORDER_ID]!a}, but "{order_id}" stands for {stands}'
        return Unresolved(what, "the operation decides what the order may write", _REWORD)
    if not meant.operations and not operation:
        what = f'"{order_id}" stands for no operation'
        why = "where no order file tells, the order's stem names its operation, or a Shapeup-Operation trailer does"
        return Unresolved(what, why, "add a trailer Shapeup-Operation: <operation> to the commit")
    return meant._replace(operations=(operation or meant.operations[0],))


def _touches(commit: Commit, folder: bytes) -> bool:
    """Whether a change lies in the folder, or in the place of it or of a folder above it."""
    return any(
        change.path.startswith(folder) or folder.startswith(change.path + b"/")
        for change in commit.changes
        if change.path[:7] == b"shapeup"
    )


def _files(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Plain files alone: a link or a submodule is no contract. Of `x.md` and `x.json` the first wins (§10)."""
    files = {entry.name: entry for entry in entries if entry.mode.startswith("100")}
    return tuple(
        entry
        for name, entry in files.items()
        if not (name.endswith(b".json") and name.removesuffix(b".json") + b".md" in files)
    )


def _base_name(entry: Entry) -> str | None:
    """The scope id that the file's name is; None where it is none."""
    name, _, ending = entry.name.rpartition(b".")
    if ending not in (b"md", b"json"):
        return None
    try:
        return name.decode("ascii")
    except UnicodeDecodeError:
        return None


def read_globs(name: bytes, data: bytes, where: str) -> Globs | Unresolved:
    """What a scope contract's file says may be written; Unresolved where just that cannot be read as a whole."""
    if name.endswith(b".json"):
        return _json_globs(data, where)
    from parsers.contracts import parse_contract

    contract = parse_contract("scope-contract", data.decode("utf-8", "replace"), where)
    fields = ("allowed_file_substrate", "shared_substrate")
    broken = [part.field for part in contract.unreadable if part.field in fields]
    if contract.fault is not None or broken:
        reason = contract.fault.what if contract.fault else f"`{broken[0]}` cannot be read as a whole"
        return Unresolved(
            f"{where}: {reason}", "the order's paths come from there", f"correct {where} in a commit before it"
        )
    return contract.texts(fields[0]), contract.texts(fields[1])


def _json_globs(data: bytes, where: str) -> Globs | Unresolved:
    import json

    try:
        value = json.loads(data)
        found = [value.get(field) or [] for field in ("allowed_file_substrate", "shared_substrate")]
        if all(isinstance(globs, list) and all(isinstance(glob, str) for glob in globs) for globs in found):
            return tuple(found[0]), tuple(found[1])
    except (ValueError, AttributeError, RecursionError):
        pass
    return Unresolved(
        f"{where} is no contract", "the order's paths come from there", f"correct {where} in a commit before it"
    )
