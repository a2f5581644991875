"""What the spec lint looks at: contracts, use cases, documents, requirements, intake and board, read from any Tree. Source: protocol §5.2, §10.

What cannot be read as a file counts as absent; a contract that cannot be read says so.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from parsers.contracts import ParsedContract, parse_contract
from parsers.faults import Fault
from parsers.frontmatter import Value, parse_frontmatter, scalar_text
from parsers.layout import SHARED_ROOT, folder_of, path_of, stem_at
from parsers.markdown import decode
from parsers.scope_contract import FIXTURES
from parsers.strict_json import parse_strict
from parsers.tasks import Task, parse_task
from parsers.tier_direction import READ_ENDINGS
from parsers.tree import Tree, Unreadable

TASK_NAME = re.compile(r"task-[a-z0-9_.-]+\.md\Z", re.IGNORECASE)


class ScopeFacts(NamedTuple):
    """One scope contract. `data`: its bytes; `fault`: why nothing of it could be read (its values are then empty)."""

    path: str
    scope_id: str
    contract: ParsedContract
    data: bytes = b""
    fault: Fault | None = None

    @property
    def allowed(self) -> tuple[str, ...]:
        """The globs that the scope may write."""
        return self.contract.texts("allowed_file_substrate")

    @property
    def shared(self) -> tuple[str, ...]:
        """The globs that it says it shares."""
        return self.contract.texts("shared_substrate")

    @property
    def use_cases(self) -> tuple[str, ...]:
        """The use cases that it answers for, as written."""
        return self.contract.texts("use_cases")

    @property
    def fixtures(self) -> tuple[str, ...]:
        """The commands that T0 runs."""
        return self.contract.texts(FIXTURES)

    @property
    def is_chowder(self) -> bool:
        """Whether it gathers strays, so that the shape of its substrate says nothing."""
        return self.contract.keys.get("topology_type") == "CHOWDER"

    @property
    def is_superseded(self) -> bool:
        """Whether other scopes took its place: it is kept and builds nothing any more."""
        return bool(self.contract.texts("superseded_by"))

    def at(self, key: str) -> str:
        """Where a key stands, for findings; the file alone where it does not."""
        line = self.contract.lines.get(key)
        return self.path if line is None else f"{self.path}:{line}"


class BoardTask(NamedTuple):
    """A task with its type, and the lines of its keys, from 1."""

    task: Task
    type: str
    lines: Mapping[str, int]

    def at(self, key: str) -> str:
        """Where a key stands, for findings."""
        line = self.lines.get(key)
        return self.task.path if line is None else f"{self.task.path}:{line}"


class UseCase(NamedTuple):
    """A use case file; its id is the file's stem."""

    id: str
    path: str
    text: str


class SpecFacts(NamedTuple):
    """One feature. `files`: every path of the project but `.git`, `node_modules` and `.shapeup`, sorted.

    `documents`: the committed texts of the feature by path; `requirements`, `intake`: None where there is no such file.
    """

    slug: str
    files: tuple[str, ...]
    scopes: tuple[ScopeFacts, ...] = ()
    tasks: tuple[BoardTask, ...] = ()
    use_cases: tuple[UseCase, ...] = ()
    documents: Mapping[str, bytes] = {}
    requirements: str | None = None
    intake: str | None = None

    @property
    def live_scopes(self) -> tuple[ScopeFacts, ...]:
        """The scopes that still build."""
        return tuple(scope for scope in self.scopes if not scope.is_superseded)

    @property
    def domain_model(self) -> str:
        """The path where the domain model belongs."""
        return f"{spec_folder(self.slug)}/domain-model.md"


def spec_folder(slug: str) -> str:
    """The folder of a feature's spec documents."""
    return folder_of("spec", slug)


def read_spec_facts(tree: Tree, slug: str, files: Iterable[str]) -> SpecFacts:
    """The facts of one feature in this tree; `files`: the project's paths in it, in any order."""
    facts = read_scope_facts(tree, slug, files)
    prefix = f"{SHARED_ROOT}/{slug}/"
    read = ((path, _document(tree, path)) for path in _below(facts.files, prefix))
    documents = {path: data for path, data in read if data is not None}
    use_cases = tuple(case._replace(text=decode(documents.get(case.path, b""))) for case in facts.use_cases)
    intake = _bytes(tree, path_of("intake", slug))
    return facts._replace(use_cases=use_cases, documents=documents, intake=None if intake is None else decode(intake))


def read_scope_facts(tree: Tree, slug: str, files: Iterable[str]) -> SpecFacts:
    """As much of the facts as the rules over scopes need: no document, no text of a use case, no intake."""
    listed = tuple(sorted(files))
    requirements = _bytes(tree, path_of("requirements", slug))
    return SpecFacts(
        slug,
        listed,
        tuple(_scopes(tree, slug)),
        tuple(_tasks(tree, slug)),
        tuple(_use_cases(listed, slug)),
        requirements=None if requirements is None else decode(requirements),
    )


def _below(files: Sequence[str], prefix: str) -> Iterator[str]:
    for at in range(bisect_left(files, prefix), len(files)):
        if not files[at].startswith(prefix):
            return
        yield files[at]


def _document(tree: Tree, path: str) -> bytes | None:
    return _bytes(tree, path) if path.lower().endswith(READ_ENDINGS) else None


def _scopes(tree: Tree, slug: str) -> Iterator[ScopeFacts]:
    """By base name; where both forms of a contract lie, the markdown counts (§10)."""
    folder = folder_of("scope-contract", slug)
    names = tree.list(folder)
    bases = {name.removesuffix(ending) for ending in (".md", ".json") for name in names if name.endswith(ending)}
    for base in sorted(bases):
        name = f"{base}.md" if f"{base}.md" in names else f"{base}.json"
        path = f"{folder}/{name}"
        try:
            data = tree.read(path)
        except (Unreadable, OSError) as stop:
            yield ScopeFacts(path, base, _empty(), b"", unread_fault(path, stop))
            continue
        if data is not None:
            yield _scope(path, data)


def unread_fault(path: str, stop: Unreadable | OSError) -> Fault:
    """Why a file could not be read."""
    if isinstance(stop, Unreadable):
        return stop.fault
    return Fault(
        "E-IO",
        path,
        f"it cannot be read: {stop.strerror or stop}",
        "what cannot be read counts as absent",
        "make it readable",
    )


def _empty() -> ParsedContract:
    return ParsedContract("scope-contract", {}, (), {})


def _scope(path: str, data: bytes) -> ScopeFacts:
    fault = None
    if path.endswith(".md"):
        contract = parse_contract("scope-contract", decode(data), path)
    else:
        contract, fault = _json_contract(path, data)
    declared = contract.keys.get("scope_id")
    scope_id = scalar_text(declared) if declared not in (None, "") else stem_at(path)
    return ScopeFacts(path, scope_id, contract, data, fault)


def _json_contract(path: str, data: bytes) -> tuple[ParsedContract, Fault | None]:
    """A contract of the older form: one JSON object with the same keys."""
    read = parse_strict(data, path)
    if read.fault:
        return _empty(), read.fault
    if not isinstance(read.value, dict):
        why, fix = "a contract is one JSON object", "write the contract as markdown with frontmatter"
        return _empty(), Fault("E-JSON", path, "it is no JSON object", why, fix)
    return ParsedContract("scope-contract", {key: _value(item) for key, item in read.value.items()}, (), {}), None


def _value(item: object) -> Value:
    if isinstance(item, list):
        return tuple(one for one in item if isinstance(one, str))
    return item if isinstance(item, str | int | bool) else None


def _tasks(tree: Tree, slug: str) -> Iterator[BoardTask]:
    folder = folder_of("board-index", slug)
    for name in tree.list(folder):
        data = _bytes(tree, f"{folder}/{name}") if TASK_NAME.match(name) else None
        if data is not None:
            yield _task(f"{folder}/{name}", data)


def _task(path: str, data: bytes) -> BoardTask:
    task, _ = parse_task(path, data)
    block, _ = parse_frontmatter(decode(data), path)
    kind = block.values.get("type") if block else None
    lines = {key: at + 1 for key, at in block.lines.items()} if block else {}
    return BoardTask(task, kind if isinstance(kind, str) else "", lines)


def _use_cases(files: Sequence[str], slug: str) -> Iterator[UseCase]:
    folder = folder_of("use-case", slug)
    for path in _below(files, f"{folder}/UC-"):
        if path.endswith(".md") and "/" not in path[len(folder) + 1 :]:
            yield UseCase(stem_at(path), path, "")


def _bytes(tree: Tree, path: str) -> bytes | None:
    try:
        return tree.read(path)
    except (Unreadable, OSError):
        return None
