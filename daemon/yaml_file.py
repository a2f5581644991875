"""Where the keys of a YAML file stand, so that a line can be put in and every other byte kept. The only importer of ruamel.

Source: house-style "Shape", design §6.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode


class NotYaml(Exception):
    """The bytes are not one YAML document; the text says where."""


class Spot(NamedTuple):
    """Where one key stands; lines and columns count from 0. `child_*` speak of the first key below, for a block only."""

    line: int
    column: int
    value: Literal["block", "nothing", "other"]
    child_line: int = -1
    child_column: int = -1


def read_yaml(data: bytes) -> object:
    """The document as plain values; None for an empty one. Raises NotYaml."""
    try:
        return YAML(typ="safe", pure=True).load(data)
    except (YAMLError, ValueError, RecursionError) as error:
        raise NotYaml(_where(error)) from None


def find_spots(data: bytes, depth: int = 2) -> dict[tuple[str, ...], Spot] | None:
    """Every key down to `depth`; None where the document is not a block of keys (and not empty). Raises NotYaml."""
    try:
        node = YAML(typ="safe", pure=True).compose(data)
    except (YAMLError, ValueError, RecursionError) as error:
        raise NotYaml(_where(error)) from None
    if node is None:
        return {}
    if not isinstance(node, MappingNode) or node.flow_style:
        return None
    found: dict[tuple[str, ...], Spot] = {}
    _walk(node, (), depth, found)
    return found


def _walk(node: MappingNode, above: tuple[str, ...], depth: int, found: dict[tuple[str, ...], Spot]) -> None:
    for key, value in node.value:
        path = (*above, str(key.value))
        found[path] = _spot(key, value)
        if isinstance(value, MappingNode) and depth > 1:
            _walk(value, path, depth - 1, found)


def _spot(key: Node, value: Node) -> Spot:
    line, column = key.start_mark.line, key.start_mark.column
    match value:
        case MappingNode(flow_style=False, anchor=None, value=[(first, _), *_]):
            return Spot(line, column, "block", first.start_mark.line, first.start_mark.column)
        case ScalarNode(value="", style=None, anchor=None):
            return Spot(line, column, "nothing")
    return Spot(line, column, "other")


def _where(error: Exception) -> str:
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return str(error).splitlines()[0] if str(error) else type(error).__name__
