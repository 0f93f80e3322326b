"""Removal of unknown names from an input before its validation.

Validation would make an error of each unknown name, at a hundred times the cost of sending the name. Here the
first unknown names become problems, and the others are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel

from deskwire.engine.core.errors import PROBLEMS_MAX, Problem
from deskwire.http.api.input.validation_messages import pointer_token


class Unknown:
    """The unknown fields that were removed.

    Args:
        code, message: of each problem.
        mark: separates a name from the pointer before it.
    """

    __slots__ = ("_code", "_mark", "_message", "count", "problems")

    def __init__(
        self, code: str = "unknown_field", message: str = "There is no such field.", mark: str = "/"
    ) -> None:
        self._code = code
        self._message = message
        self._mark = mark
        self.count = 0
        self.problems: list[Problem] = []

    @property
    def unnamed(self) -> int:
        """The number of unknown fields without a problem of their own."""
        return self.count - len(self.problems)

    def note(self, place: str, names: Iterator[str], count: int) -> None:
        """Count unknown names at a place.

        The first ones become problems.
        """
        self.count += count
        for name in islice(names, PROBLEMS_MAX - len(self.problems)):
            self.problems.append(
                Problem(f"{place}{self._mark}{pointer_token(name)}", self._code, self._message)
            )


def without_unknown(model: type[BaseModel], value: Any, unknown: Unknown, place: str = "") -> Any:
    """Return the value without names that the model does not have, at every level.

    Returns the value itself if there are none.

    Args:
        unknown: collects the removed names.
        place: the JSON pointer of the value.
    """
    if type(value) is not dict:
        return value  # validation refuses it
    plan = _plan(model)
    if plan.names is not None and not value.keys() <= plan.names:
        names = plan.names
        kept = {name: each for name, each in value.items() if name in names}
        unknown.note(place, (name for name in value if name not in names), len(value) - len(kept))
        value = kept
    for name, inner, many in plan.inner:
        given = value.get(name)
        if given is None:
            continue
        here = f"{place}/{name}"
        left = _each(inner, given, unknown, here) if many else without_unknown(inner, given, unknown, here)
        if left is not given:
            value = {**value, name: left}
    return value


def _each(model: type[BaseModel], items: Any, unknown: Unknown, place: str) -> Any:
    if type(items) is not list:
        return items
    left = [without_unknown(model, each, unknown, f"{place}/{index}") for index, each in enumerate(items)]
    return left if any(map(_differ, left, items)) else items


def _differ(one: Any, other: Any) -> bool:
    return one is not other


class _Plan(NamedTuple):
    """The names of a model. `names` is None if it accepts others.

    `inner` has the fields that are models or lists of models.
    """

    names: frozenset[str] | None
    inner: tuple[tuple[str, type[BaseModel], bool], ...]


@cache
def _plan(model: type[BaseModel]) -> _Plan:
    fields: Mapping[str, Any] = {field.alias or name: field for name, field in model.model_fields.items()}
    names = frozenset(fields) if model.model_config.get("extra") == "forbid" else None
    found = [(name, *_models_in(field.annotation)) for name, field in fields.items()]
    return _Plan(names, tuple((name, inner, many) for name, inner, many in found if inner is not None))


def _models_in(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """Return the model of a field, and whether the field is a list of it."""
    only = without_null(annotation)
    if get_origin(only) is list:
        return _model(without_null(get_args(only)[0])), True
    return _model(only), False


def _model(annotation: Any) -> type[BaseModel] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def without_null(annotation: Any) -> Any:
    """Return the type of a field without null and constraints.

    Returns the annotation itself if it has several types.
    """
    if get_origin(annotation) is Annotated:
        return without_null(get_args(annotation)[0])
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    kinds = [each for each in get_args(annotation) if each is not NoneType]
    return without_null(kinds[0]) if len(kinds) == 1 else annotation
