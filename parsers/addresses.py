"""Order ids, stems, scope ids and run ids: one alphabet and one parser for each. Source: protocol §2.1, §2.4, rulings B6, B7.

Light module: standard library only, hooks import it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

SLUG = re.compile(r"[a-z0-9][a-z0-9-]*\Z")
MAX_ORDER_ID = 200  # file names are made from it, with something before and behind
ORDER_ID = re.compile(r"[a-z0-9][a-z0-9-]*/[a-z0-9][A-Za-z0-9.-]*\Z")
RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]*-[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}\Z")

_BUILD = re.compile(r"(?:(?P<name>.*)-)?r(?P<round>[0-9]{1,9})-a(?P<attempt>[0-9]{1,9})\Z", re.DOTALL)
_ROUND = re.compile(r"(?P<name>.*)-r(?P<round>[0-9]{1,9})\Z", re.DOTALL)
_STARTED_AT = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})")


class Address(NamedTuple):
    """What an order's stem says: name (scope or operation; None when there is none), round and attempt (None when absent)."""

    name: str | None
    round: int | None
    attempt: int | None


def slug_of(order_id: str) -> str:
    """The text before the first `/`; the whole id when there is none."""
    return order_id.split("/", 1)[0]


def stem_of(order_id: str) -> str | None:
    """The text after the first `/`; None when there is none."""
    return order_id.split("/", 1)[1] if "/" in order_id else None


def parse_address(order_id: str) -> Address:
    """Name, round and attempt of an order id; `s/a-r1-b-r2-a3` is (a-r1-b, 2, 3). Source: protocol §2.4, W-03, B7."""
    stem = stem_of(order_id)
    if not stem:
        return Address(None, None, None)
    if build := _BUILD.match(stem):
        return Address(build["name"], int(build["round"]), int(build["attempt"]))
    if phase := _ROUND.match(stem):
        return Address(phase["name"], int(phase["round"]), None)
    return Address(stem, None, None)


def scope_stem(scope_id: str) -> str:
    """A scope id as it stands in a stem: lower case, foreign characters to `-`. Source: protocol §2.4, B6."""
    return re.sub(r"^[^a-z0-9]+", "", re.sub(r"[^a-z0-9.-]", "-", scope_id.lower()))


def slugify(text: str) -> str:
    """A slug of at most 48 characters made from free text; `run` when nothing is left. Source: protocol §2.1, W-71."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:48].rstrip("-") or "run"


def mint_run_id(slug: str, started_at: str, intake_sha256: str | None) -> str | None:
    """The run's id; None when the slug is empty after cleaning or the start does not parse. Source: protocol §2.1."""
    import hashlib  # 3 ms, and hooks mint nothing

    clean = re.sub(r"[^a-z0-9-]", "-", slug.lower()).strip("-")
    start = _STARTED_AT.match(started_at)
    if not clean or start is None:
        return None
    year, month, day, hour, minute, second = start.groups()
    digest = hashlib.sha256(f"{clean}\x00{started_at}\x00{intake_sha256 or ''}".encode()).hexdigest()
    return f"{clean}-{year}{month}{day}T{hour}{minute}{second}Z-{digest[:8]}"
