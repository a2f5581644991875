"""Reads what lies under a shadow ref: a commit, what it says of itself, when, its tree. Source: protocol §6.5, rulings G1, W-68."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from daemon.trees.objects import Note, names_slug, parse_note
from daemon.trees.site import Site, kept_ref, legacy_ref, undo_refs


class Kept(NamedTuple):
    """A stored tree: the ref, its commit, the commit's tree and its message. `note` None: another tool made it."""

    ref: str
    commit: str
    tree: str
    message: str
    note: Note | None

    @property
    def trial(self) -> int | None:
        """The trial after which it was stored; None where it does not say."""
        return self.note.trial if self.note else None


def read_refs(site: Site, refs: Sequence[str]) -> dict[str, Kept]:
    """What lies under each of the refs; one that leads to no commit is left out. Raises GitFailed."""
    out, found = site.ask("cat-file", "--batch", stdin="".join(f"{ref}\n" for ref in refs).encode()), {}
    for ref in refs:
        head, _, out = out.partition(b"\n")
        words = head.decode("utf-8", "replace").split(" ")
        if len(words) != 3 or not words[2].isdigit():
            continue  # `<ref> missing`
        body, out = out[: int(words[2])], out[int(words[2]) + 1 :]
        if words[1] == "commit":
            headers, _, message = body.decode("utf-8", "replace").partition("\n\n")
            tree = headers.partition("\n")[0].removeprefix("tree ")
            found[ref] = Kept(ref, words[0], tree, message, parse_note(message))
    return found


def read_kept(site: Site, slug: str, scope_id: str) -> Kept | None:
    """The scope's kept tree; the unslugged ref's where its message names the slug (W-68). Raises GitFailed."""
    own, other = kept_ref(slug, scope_id), legacy_ref(scope_id)
    found = read_refs(site, (own, other))
    if own in found:
        return found[own]
    legacy = found.get(other)
    return legacy if legacy and names_slug(legacy.message, slug) else None


def list_undos(site: Site, slug: str, scope_id: str) -> tuple[int, ...]:
    """The trials whose restore can be undone, in order. Raises GitFailed."""
    names = site.ask("for-each-ref", "--format=%(refname:lstrip=-1)", undo_refs(slug, scope_id)).decode().split()
    return tuple(sorted(int(name) for name in names if name.isdigit()))
