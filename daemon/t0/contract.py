"""Finds and reads the contract that `t0` and `trust` are told of: by path or by scope id. Source: protocol §6, §10, rulings A1, G7."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from daemon.disk import DiskTree
from hooks.spec_rules.readable_contract import judge_readable
from hooks.verdict import render_violation
from parsers.addresses import SLUG, scope_stem
from parsers.contracts import parse_contract
from parsers.faults import render_fault
from parsers.layout import NOT_A_SLUG, SHARED_ROOT, folder_of, path_of, stem_at
from parsers.markdown import decode
from parsers.scope_contract import ScopeContract, take_scope_contract
from parsers.tree import Unreadable


class NoContract(Exception):
    """There is no contract that may be run; the text says which part is at fault and what to do."""


class FoundContract(NamedTuple):
    """A contract with its feature and the bytes it was read from. `contract.path` is relative to the worktree's top."""

    slug: str
    contract: ScopeContract
    data: bytes


def find_contract(top: Path, word: str, here: Path | None = None) -> FoundContract:
    """The contract that a path (relative to `here`) or a scope id names, in the worktree at `top`. Raises NoContract."""
    if "/" in word or word.endswith(".md"):
        return read_contract(top, _inside(top, (here or Path.cwd()) / word, word))
    tree = DiskTree(top)
    paths = [path for slug in _slugs(tree) for path in _named(tree, slug, scope_stem(word))]
    if not paths:
        known = ", ".join(sorted({stem_at(path) for slug in _slugs(tree) for path in _paths(tree, slug)}))
        what = f"there is no contract of a scope {word!r} below {SHARED_ROOT}/*/scopes/"
        raise NoContract(f"{what}\n  fix: name its file{', or one of: ' + known if known else ''}")
    if len(paths) > 1:
        raise NoContract(f"{word!r} is a scope of several features\n  fix: name one file: {', '.join(paths)}")
    return read_contract(top, paths[0])


def find_scope(top: Path, slug: str, stem: str) -> FoundContract:
    """The contract of the scope that stems of orders name so, in one feature. Raises NoContract."""
    path = next(iter(_named(DiskTree(top), slug, stem)), None)
    if path is None:
        raise NoContract(f"there is no contract of {stem!r} in {folder_of('scope-contract', slug)}/")
    return read_contract(top, path)


def _slugs(tree: DiskTree) -> list[str]:
    return [slug for slug in tree.list(SHARED_ROOT) if SLUG.match(slug) and slug not in NOT_A_SLUG]


def _paths(tree: DiskTree, slug: str) -> list[str]:
    names = tree.list(folder_of("scope-contract", slug))
    return [path_of("scope-contract", slug, stem_at(name)) for name in names if name.endswith(".md")]


def _named(tree: DiskTree, slug: str, stem: str) -> list[str]:
    return [path for path in _paths(tree, slug) if scope_stem(stem_at(path)) == stem]


def _inside(top: Path, path: Path, word: str) -> str:
    """The path relative to the worktree. The folder is resolved; the file itself must be no link, which reading it tells."""
    whole = os.path.abspath(path)
    real = os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))
    inside = os.path.relpath(real, top)
    if inside.startswith("../") or inside == "..":
        raise NoContract(f"{word} lies outside {top}\n  fix: name a contract of this repository, or say --repo")
    return inside


def read_contract(top: Path, path: str) -> FoundContract:
    """The contract at the path. Raises NoContract where it is missing, lies in no feature, or does not read as a whole."""
    try:
        data = DiskTree(top).read(path)
    except Unreadable as stop:
        raise NoContract(render_fault(stop.fault)) from None
    if data is None:
        raise NoContract(
            f"there is no contract {path}\n  fix: name the file below {SHARED_ROOT}/<slug>/scopes/, or the scope's id"
        )
    slug = _slug_of(path)
    text = decode(data)
    parsed = parse_contract("scope-contract", text, path)
    violations = judge_readable(os.fsencode(path), text, parsed)
    faults = [render_violation(one) for one in violations]
    contract, wrong = take_scope_contract(parsed, path)
    faults += map(render_fault, wrong)
    if faults or contract is None:
        raise NoContract("\n".join(faults))
    return FoundContract(slug, contract, data)


def _slug_of(path: str) -> str:
    """The segment before the last `scopes`. Source: protocol §6."""
    parts = path.split("/")[:-1]
    at = max((at for at, part in enumerate(parts) if part == "scopes"), default=0)
    if at == 0 or not SLUG.match(parts[at - 1]) or parts[at - 1] in NOT_A_SLUG:
        raise NoContract(
            f"{path} lies in no feature\n  fix: a scope contract stands at {SHARED_ROOT}/<slug>/scopes/<scope>.md"
        )
    return parts[at - 1]
