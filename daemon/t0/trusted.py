"""What may run by itself: a contract that this machine trusts, with finished scopes whose contracts it trusts as well. Source: rulings A2, A4.

The registry of finished scopes lies where agents can write. Its commands are taken only where they stand, word for word, in a trusted
contract; and the bytes that were looked at are the bytes that run.
"""

from __future__ import annotations

from pathlib import Path

from daemon.disk import DiskTree
from daemon.t0.contract import FoundContract, NoContract, find_scope
from daemon.trust import is_trusted
from parsers.addresses import scope_stem
from parsers.layout import path_of
from parsers.seesaw import FinishedScope, parse_seesaw
from parsers.tree import DictTree, Tree


class NotTrusted(Exception):
    """Something that would run is not trusted on this machine; the text says what, and how to trust it."""


def trusted_registry(root: Path, top: Path, found: FoundContract) -> tuple[Tree, str]:
    """The registry to measure the contract with, held in memory. Raises NotTrusted, and Unreadable for what is no file."""
    if not is_trusted(root, found.data):
        raise NotTrusted(_told(found.contract.path))
    path = path_of("seesaw", found.slug)
    data = DiskTree(root).read(path)
    for scope in parse_seesaw(data, path).scopes if data is not None else ():
        _check(root, top, found.slug, scope)
    return DictTree({} if data is None else {path: data}), path


def _check(root: Path, top: Path, slug: str, scope: FinishedScope) -> None:
    try:
        own = find_scope(top, slug, scope_stem(scope.scope_id))
    except NoContract as error:
        raise NotTrusted(f"the registry lists {scope.scope_id}: {error}") from None
    if not is_trusted(root, own.data):
        raise NotTrusted(_told(own.contract.path))
    if scope.fixtures != own.contract.fixtures:
        path = own.contract.path
        raise NotTrusted(
            f"the registry names other fixtures for {scope.scope_id} than {path}\n  fix: `shapeupd sync` derives it anew"
        )


def _told(path: str) -> str:
    return f"this machine does not trust these bytes of {path}\n  fix: read it, then `shapeupd trust {path}`"
