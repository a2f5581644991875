"""Finishes the restores that a death left half done, when the daemon starts. Source: issue 5 "Must show", ruling G2."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from daemon.log import Log
from daemon.place import Place

NOTES = ("shapeupd", "trees")  # below the common git dir; where it is not, no tree was ever kept


def finish_torn_restores(place: Place, log: Log, at: datetime) -> None:
    """Finish them and say so; what cannot be finished now is said too, and met again by the next `t0`. Raises FsyncFailed."""
    if place.git_dir is None or not place.git_dir.joinpath(*NOTES).is_dir():
        return
    from daemon.t0.neighbours import read_neighbours
    from daemon.trees.finishing import finish_restores
    from daemon.trees.site import TreeFailed, find_site

    site = find_site(place.root)
    if site is None:
        return
    try:
        finished = finish_restores(site, at, others=read_neighbours(place.root).may_write)
    except TreeFailed as error:
        what = f"an interrupted restore could not be finished: {error}. fix: mend that, then run `shapeupd t0` for the scope"
        log.write("daemon.error", level="error", code="E-T0", error=what)
        return
    for one in finished:
        fields: dict[str, Any] = {"trial": one.trial, "undo_ref": one.restored.undo_ref if one.restored else None}
        done = "a restore that was interrupted is finished"
        note = done if one.restored else f"an interrupted restore was let go: {one.why}"
        log.write("tree.restored", level="warn", slug=one.slug, subject=one.scope_id, note=note, **fields)
