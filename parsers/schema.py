"""The protocol's small schema validator, its nodes derived from pydantic models. Source: protocol §2.15, §12.4, rulings C1.

The models are the one description of every record; `node_of` turns a model's annotations into validator nodes once, and
`shape_errors` answers with exactly the texts the reference prints. pydantic types only what passed. What annotations
cannot say is said by markers:

    Maybe[T] = None     may be missing; JSON null is refused (a plain `T | None = None` allows null)
    Many[T] = ()        an array; missing and empty read alike
    Whole, One          integers as JSON has them: 2.0 and 1e0 are whole numbers, true is none
    Matches(source)     a pattern, kept as it stands in error texts, matched as JavaScript matches it
    Unlisted(value)     an enum value that is accepted though error texts do not list it
"""

from __future__ import annotations

import re
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Strict

from parsers.js_text import js_json

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Record(BaseModel):
    """A record of the registry: strict, frozen, unknown keys ignored (§12.4)."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class _AbsentMarker:
    """On an optional field: the value may be missing, but may not be null."""


class Matches:
    """The string must contain a match of `source`. `search`, where given, finds the same strings in linear time."""

    def __init__(self, source: str, search: str | None = None) -> None:
        self.source = source
        self.accepts = _javascript_search(search or source)


class Unlisted:
    """Values of an enum that error texts leave out (§2.4, D-13): an envelope without them validates as in REF."""

    def __init__(self, *values: str) -> None:
        self.values = values


def _javascript_search(source: str) -> re.Pattern[str]:
    """The pattern with JavaScript's meaning: ASCII classes, and `$` only at the very end of the input."""
    python = source[:-1] + r"\Z" if source.endswith("$") and not source.endswith(r"\$") else source
    return re.compile(python, re.ASCII)


def whole_number(value: object) -> object:
    """2.0 as the integer it is in JSON; everything else as it came."""
    return int(value) if type(value) is float and value.is_integer() else value


Maybe = Annotated[T | None, _AbsentMarker()]
Many = Annotated[tuple[T, ...], Strict(False)]
Whole = Annotated[int, BeforeValidator(whole_number)]
One = Annotated[Literal[1], BeforeValidator(whole_number)]


class Node(NamedTuple):
    """One place of a schema. Empty `types`: anything goes. `plain` is the Python type that needs no further look."""

    types: tuple[str, ...] = ()
    enum: tuple[object, ...] = ()
    unlisted: tuple[object, ...] = ()
    pattern: Matches | None = None
    required: tuple[str, ...] = ()
    properties: tuple[tuple[str, Node], ...] = ()
    items: Node | None = None
    any_of: tuple[Node, ...] = ()
    plain: type | None = None


_ANYTHING = Node()
_SCALARS: dict[object, Node] = {
    str: Node(types=("string",), plain=str),
    int: Node(types=("integer",), plain=int),
    float: Node(types=("number",), plain=float),
    bool: Node(types=("boolean",), plain=bool),
    NoneType: Node(types=("null",), plain=NoneType),
    dict: Node(types=("object",), plain=dict),
}


@cache
def node_of(model: type[BaseModel]) -> Node:
    """The validator node of a model: its fields in declaration order, the required ones named first."""
    hints = get_type_hints(model, include_extras=True)
    return Node(
        types=("object",),
        required=tuple(field.alias or name for name, field in model.model_fields.items() if field.is_required()),
        properties=tuple((field.alias or name, _node(hints[name])) for name, field in model.model_fields.items()),
    )


def _node(annotation: Any) -> Node:
    origin = get_origin(annotation)
    if annotation is Any:
        return _ANYTHING
    if origin is Annotated:
        inner, *markers = get_args(annotation)
        if any(isinstance(marker, _AbsentMarker) for marker in markers):
            return _one_of([_node(branch) for branch in get_args(inner) if branch is not NoneType])
        return _marked(_node(inner), markers)
    if origin is Literal:
        values = get_args(annotation)
        return Node(types=_SCALARS[type(values[0])].types, enum=values)
    if origin is Union or origin is UnionType:
        return _union([_node(branch) for branch in get_args(annotation)])
    if origin is tuple:
        return Node(types=("array",), items=_node(get_args(annotation)[0]))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return node_of(annotation)
    return _SCALARS[origin or annotation]


def _marked(node: Node, markers: list[object]) -> Node:
    for marker in markers:
        match marker:
            case Matches():
                node = node._replace(pattern=marker, plain=None)
            case Unlisted():
                listed = tuple(value for value in node.enum if value not in marker.values)
                node = node._replace(enum=listed, unlisted=marker.values)
    return node


def _one_of(shapes: list[Node]) -> Node:
    return shapes[0] if len(shapes) == 1 else Node(any_of=tuple(shapes))


def _union(branches: list[Node]) -> Node:
    """`T | None` widens T's types; two shapes become an anyOf."""
    node = _one_of([branch for branch in branches if branch.types != ("null",)])
    if node.any_of or not node.types:
        return node
    enum = (*node.enum, None) if node.enum else ()
    return node._replace(types=(*node.types, "null"), enum=enum, plain=None)


def shape_errors(model: type[BaseModel], value: object, limit: int | None = None) -> tuple[str, ...]:
    """Every §2.15 error of the value, in REF's order; empty when it has the model's shape.

    `limit` stops after that many: a megabyte of wrong array items would otherwise yield a text for each.
    """
    errors: list[str] = []
    _check(node_of(model), value, "$", errors, limit if limit is not None else _NO_LIMIT)
    return tuple(errors[:limit])


_NO_LIMIT = 1 << 62


def typed(model: type[M], value: object) -> M:
    """The value as its model. Call it only when `shape_errors` is empty and the value came from parse_strict."""
    return model.model_validate(value)


def _check(node: Node, value: object, path: str, errors: list[str], limit: int) -> None:
    if node.any_of:
        if not any(_fits(branch, value) for branch in node.any_of):
            errors.append(f"{path}: {js_json(value)} matches none of the {len(node.any_of)} allowed shapes (anyOf)")
        return
    if node.types and not _has_type(value, node.types):
        errors.append(f"{path}: expected {'|'.join(node.types)}, got {_actual(value)}")
        return
    if node.enum and value not in node.enum and value not in node.unlisted:
        listed = ", ".join("null" if v is None else str(v) for v in node.enum)
        errors.append(f"{path}: value {js_json(value)} not in enum [{listed}]")
    if node.pattern is not None and isinstance(value, str) and not node.pattern.accepts.search(value):
        errors.append(f'{path}: "{value}" does not match pattern {node.pattern.source}')
    if isinstance(value, dict):
        _check_object(node, value, path, errors, limit)
    elif node.items is not None and isinstance(value, list):
        _check_items(node.items, value, path, errors, limit)


def _check_object(node: Node, value: dict[str, object], path: str, errors: list[str], limit: int) -> None:
    for name in node.required:
        if name not in value:
            errors.append(f'{path}: missing required field "{name}"')
    for name, inner in node.properties:
        if name in value and type(value[name]) is not inner.plain:
            if len(errors) >= limit:
                return
            _check(inner, value[name], f"{path}.{name}", errors, limit)


def _check_items(inner: Node, items: list[object], path: str, errors: list[str], limit: int) -> None:
    plain = inner.plain
    for index, item in enumerate(items):
        if type(item) is not plain:
            if len(errors) >= limit:
                return
            _check(inner, item, f"{path}[{index}]", errors, limit)


def _fits(node: Node, value: object) -> bool:
    if type(value) is node.plain:
        return True
    errors: list[str] = []
    _check(node, value, "$", errors, 1)
    return not errors


def _actual(value: object) -> str:
    """The JSON type as error texts name it: `integer` for whole numbers, whatever their spelling."""
    if type(value) is float:
        return "integer" if value.is_integer() else "number"
    return _TYPE_NAMES.get(type(value), "object")


_TYPE_NAMES: dict[type, str] = {
    NoneType: "null",
    bool: "boolean",
    str: "string",
    int: "integer",
    list: "array",
    dict: "object",
}


def _has_type(value: object, types: tuple[str, ...]) -> bool:
    actual = _actual(value)
    return actual in types or (actual == "integer" and "number" in types)
