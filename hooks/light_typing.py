"""What our light modules take from `typing`, made without the 10 ms that `typing` and its NamedTuple classes cost a refusal. Source: targets 19.

`stand_in` is called by hooks/__main__.py alone, in a process that ends after one hook. Any name that is not here is answered
by the real module, which then takes its place. Light module: standard library only.
"""

from __future__ import annotations

import sys
from _collections import _tuplegetter  # type: ignore[import-not-found]  # the C helper that NamedTuple itself uses

TYPE_CHECKING = False
Any = object
BinaryIO = object


def stand_in() -> None:
    """Answer to `import typing` from now on; where that is loaded already, nothing is changed."""
    sys.modules.setdefault("typing", sys.modules[__name__])


def __getattr__(name: str) -> object:
    if name[:2] == "__":
        raise AttributeError(name)
    if sys.modules.get("typing") is sys.modules[__name__]:
        del sys.modules["typing"]
    import typing

    return getattr(typing, name)


class Protocol:
    """A base that says nothing at run time."""


class Generic:
    """A base that says nothing at run time."""

    def __class_getitem__(cls, item: object) -> type:
        return cls


class _Form:
    """Whatever an alias of types is written with; nobody looks at it."""

    def __getitem__(self, item: object) -> _Form:
        return self

    def __or__(self, other: object) -> _Form:
        return self

    __ror__ = __or__


def TypeVar(name: str) -> _Form:  # noqa: N802
    """A parameter of a generic class."""
    return _Form()


Literal = _Form()


class _Fields(tuple):  # type: ignore[type-arg]
    """The methods of a NamedTuple; `_fields` names its places."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _field_defaults: dict[str, object] = {}  # noqa: RUF012  # never changed, and a NamedTuple's is a dict too

    def __new__(cls, *args: object, **named: object) -> _Fields:
        fields = cls._fields
        if len(args) == len(fields) and not named:
            return tuple.__new__(cls, args)
        if len(args) > len(fields):
            raise TypeError(f"{cls.__name__} takes {len(fields)} fields, not {len(args)}")
        values = [*args]
        for field in fields[len(args) :]:
            if field in named:
                values.append(named.pop(field))
            elif field in cls._field_defaults:
                values.append(cls._field_defaults[field])
            else:
                raise TypeError(f"{cls.__name__} lacks {field}")
        if named:
            raise TypeError(f"{cls.__name__} has no {', '.join(named)}, or has it twice")
        return tuple.__new__(cls, values)

    def _replace(self, **named: object) -> _Fields:
        values = [named.pop(field, value) for field, value in zip(self._fields, self, strict=True)]
        if named:
            raise ValueError(f"{type(self).__name__} has no {', '.join(named)}")
        return tuple.__new__(type(self), values)

    def _asdict(self) -> dict[str, object]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        pairs = zip(self._fields, self, strict=True)
        return f"{type(self).__name__}({', '.join(f'{field}={value!r}' for field, value in pairs)})"


class _Maker(type):
    """Makes a tuple class out of annotated fields, as NamedTuple does; that compiles code for each class."""

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, object]) -> type:
        fields: tuple[str, ...] = tuple(space.get("__annotations__", ()))  # type: ignore[arg-type]
        defaults = {field: space.pop(field) for field in fields if field in space}
        for place, field in enumerate(fields):
            space[field] = _tuplegetter(place, field)
        space.update(__slots__=(), __match_args__=fields, _fields=fields, _field_defaults=defaults)
        return type(name, (_Fields,), space)


class _Base:
    """What stands for NamedTuple among the bases of a class."""

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (_MADE,)


_MADE = type.__new__(_Maker, "_MADE", (), {})
NamedTuple = _Base()
