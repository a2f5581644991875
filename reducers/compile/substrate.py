"""The order's `substrate` as it is written: the keys that the operation's template has. Source: protocol §3.1."""

from __future__ import annotations

from parsers.substrates import BUILD, template_of
from reducers.bugs import ScopeArea


def substrate_of(operation: str, slug: str, spec_dir: str | None, area: ScopeArea | None) -> dict[str, list[str]]:
    """What the order lets its worker write. A key that the template leaves out is absent; `shared` stands on every build order."""
    globs = (area.allowed, area.shared) if area else ((), ())
    template = template_of(operation, slug, spec_dir, globs)
    keys = ["allowed"]
    keys += ["shared"] if operation in BUILD else []
    keys += ["append_only"] if template.append_only else []
    keys += ["frozen"] if template.frozen or operation == "analyze" else []
    return {key: list(getattr(template, key)) for key in keys}
