"""What an order of each operation may write, and which operation an order's stem stands for. Source: protocol §2.4, §3.1, ruling E11.

Light module: standard library only, hooks import it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from parsers.addresses import parse_address, stem_of
from parsers.policy_file import Contract

BUILD = ("execute", "fix", "spike")  # their orders take the globs of a scope contract, and share their stems

_LOCAL, _SHARED, _SPEC, _CORE = "<L>", "<H>", "<SPEC>", "<CORE>"
_CORE_GLOBS = (
    f"{_SPEC}/domain-model.md",
    f"{_SPEC}/usecases/*.md#Steps",
    f"{_SPEC}/contracts/**",
    f"{_SPEC}/ux-behavior.md",
)


class Template(NamedTuple):
    """One row of §3.1: `<L>` is `.shapeup/<slug>`, `<H>` is `shapeup/<slug>`, `<SPEC>` the spec folder, `<CORE>` four globs."""

    allowed: tuple[str, ...] = ()
    append_only: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()


_BUILD_TEMPLATE = Template(allowed=(f"{_LOCAL}/spikes/**",))
_ELSE = Template(allowed=(f"{_LOCAL}/**",))
_NOTHING = Template()

TEMPLATES: Mapping[str, Template] = {
    "execute": _BUILD_TEMPLATE,
    "fix": _BUILD_TEMPLATE,
    "spike": _BUILD_TEMPLATE,
    "analyze": Template(allowed=(f"{_SPEC}/**", f"{_LOCAL}/**")),
    "reconcile": Template(
        allowed=(f"{_LOCAL}/tasks/**", f"{_SPEC}/scope-summary.md", f"{_LOCAL}/working/**"),
        append_only=(f"{_SPEC}/usecases/*.md#Invariants", f"{_SPEC}/usecases/*.md#Test Surface"),
        frozen=(_CORE,),
    ),
    "retrofit-surface": Template(append_only=(f"{_SPEC}/usecases/*.md#Test Surface",), frozen=(_CORE,)),
    "coverage": Template(allowed=(f"{_SHARED}/requirements.md",), frozen=(_CORE,)),
    "map-scopes": Template(
        allowed=(f"{_SHARED}/scopes/*.md", f"{_SHARED}/scope-board.md"),
        frozen=(_CORE, f"{_LOCAL}/tasks/**"),
    ),
    "wire": Template(
        allowed=(f"{_SHARED}/wiring-map.md",),
        frozen=(_CORE, f"{_SHARED}/scopes/**", f"{_SHARED}/project-profile.md"),
    ),
    "evaluate": Template(allowed=(f"{_LOCAL}/evaluation/**",), frozen=(f"{_SPEC}/**", f"{_LOCAL}/tasks/**")),
    "hunt": Template(allowed=(f"{_LOCAL}/qa/**",), frozen=(f"{_SPEC}/**", f"{_LOCAL}/tasks/**")),
    "orient": Template(allowed=(f"{_LOCAL}/orient/**",), frozen=(f"{_SPEC}/**",)),
    "translate": Template(allowed=(f"{_SHARED}/shaping/*.md", f"{_SHARED}/glossary.md")),
    "hammer": Template(allowed=(f"{_SHARED}/REPORT.md", f"{_LOCAL}/reports/**")),
    "coach": Template(allowed=("shapeup/knowledge-base/*.md",)),
    "adjudicate": _NOTHING,  # shapeupd answers these orders itself (ruling I2)
}


def template_of(
    operation: str,
    slug: str,
    spec_dir: str | None = None,
    contract_globs: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    order_id: str = "",
) -> Contract:
    """What a live order of this operation lets its worker write; any operation that the table does not name: `<L>/**`.

    `contract_globs` are the scope contract's allowed_file_substrate and shared_substrate; only build orders use them.
    `spec_dir` None: `shapeup/<slug>/spec`. Source: protocol §3.1.
    """
    template = TEMPLATES.get(operation, _ELSE)
    spec = (spec_dir or f"shapeup/{slug}/spec").rstrip("/")
    allowed, shared = contract_globs if operation in BUILD else ((), ())
    return Contract(
        order_id,
        operation,
        allowed=(*allowed, *_filled(template.allowed, slug, spec)),
        shared=tuple(shared),
        append_only=_filled(template.append_only, slug, spec),
        frozen=_filled(template.frozen, slug, spec),
    )


def _filled(globs: tuple[str, ...], slug: str, spec: str) -> tuple[str, ...]:
    whole = (glob for named in globs for glob in (_CORE_GLOBS if named == _CORE else (named,)))
    places = {_LOCAL: f".shapeup/{slug}", _SHARED: f"shapeup/{slug}", _SPEC: spec}
    return tuple(_PLACE.sub(lambda found: places[found[0]], glob) for glob in whole)


_PLACE = re.compile("|".join(map(re.escape, (_LOCAL, _SHARED, _SPEC))))


class StemMeaning(NamedTuple):
    """What an order's stem stands for. `operations`: one, the three of a build order, or none where the stem names none.

    `scope`: the scope as stems spell it (`addresses.scope_stem`), None where the stem names none. After an operation it
    may be a task's id instead (`execute-task-003`, W-02): only a contract of that name tells.
    """

    operations: tuple[str, ...]
    scope: str | None


def meaning_of(order_id: str) -> StemMeaning:
    """The operation and scope behind `<slug>/<stem>`. Source: protocol §2.4, W-02, rulings B4, B7."""
    address = parse_address(order_id)
    if address.attempt is not None:
        return StemMeaning(BUILD, address.name or None)
    operation = _operation_at(stem_of(order_id) or "")
    if operation is None:
        return StemMeaning((), None)
    rest = (address.name or "").removeprefix(operation).removeprefix("-")
    return StemMeaning((operation,), rest or None)


def _operation_at(stem: str) -> str | None:
    """The operation that the stem begins with; the longest where several do."""
    found = (name for name in TEMPLATES if stem == name or stem.startswith(f"{name}-"))
    return max(found, key=len, default=None)
