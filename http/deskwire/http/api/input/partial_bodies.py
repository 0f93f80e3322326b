"""Refusals that name all problems of a request.

They combine the problems of its model and of its handler's prechecks. The handler does not see a body that
does not fit its model. The fields that fit are put together here, so that the route's prechecks can examine
them. They run for refused requests only, and change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

from deskwire.engine.core.errors import PROBLEMS_MAX, DomainError, Invalid, Problem
from deskwire.http.api.calls import Call
from deskwire.http.api.input.unknown_fields import Unknown, without_null, without_unknown
from deskwire.http.api.routing import Route

B = TypeVar("B", bound=BaseModel)


async def refusal_with_prechecks(route: Route, call: Call[Any, Any], refused: Invalid) -> Invalid:
    """Return the refusal with the problems that the route's prechecks find.

    Other refusals of prechecks are ignored.
    """
    problems: dict[str, list[Problem]] = {}
    for each in refused.problems:
        problems.setdefault(each.pointer, []).append(each)
    for precheck in route.further:
        try:
            await precheck(call)
        except Invalid as more:
            for pointer, found in _by_pointer(more).items():
                problems.setdefault(pointer, found)
        except DomainError:
            continue
    every = [each for found in problems.values() for each in found]
    return Invalid(*every, unnamed=refused.unnamed) if len(every) > len(refused.problems) else refused


def _by_pointer(refusal: Invalid) -> Mapping[str, list[Problem]]:
    found: dict[str, list[Problem]] = {}
    for each in refusal.problems:
        found.setdefault(each.pointer, []).append(each)
    return found


def valid_part(model: type[B], value: Any) -> B:
    """Return the model with the fields of a JSON value that fit.

    The other fields are None.

    A required field that was not sent is None as well; others that were not sent have their defaults.
    """
    known = without_unknown(model, value, Unknown())
    return _fitting(model, known if isinstance(known, dict) else {})


def _fitting(model: type[B], given: Mapping[str, Any]) -> B:
    fields = dict(_fields(model, given))
    others = {
        name: None
        if field.is_required() or (field.alias or name) in given
        else field.get_default(call_default_factory=True)
        for name, field in model.model_fields.items()
        if name not in fields
    }
    return model.model_construct({*fields}, **fields, **others)


def _fields(model: type[BaseModel], given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        alias = field.alias or name
        if alias not in given:
            continue
        inner = without_null(field.annotation)
        if isinstance(inner, type) and issubclass(inner, BaseModel) and isinstance(given[alias], dict):
            yield name, _fitting(inner, given[alias])
            continue
        try:
            yield name, _adapter(model, name).validate_python(given[alias], strict=True)
        except ValidationError:
            if _is_texts(inner) and _has_others(given[alias]):
                yield name, _texts(given[alias])


def _is_texts(annotation: Any) -> bool:
    """True if an annotation is a list of strings with any constraints."""
    if get_origin(annotation) is not list:
        return False
    (item,) = get_args(annotation)
    return without_null(item) is str


def _has_others(value: Any) -> bool:
    """True for a short list of strings and other values."""
    if not isinstance(value, list) or len(value) > PROBLEMS_MAX:
        return False
    return {isinstance(each, str) for each in value} == {True, False}


def _texts(items: Sequence[Any]) -> list[str]:
    """Return the items of a list as strings, so that its strings can be checked.

    Other items become unused placeholders.

    The problems of the other items are known already and take precedence.
    """
    return [each if isinstance(each, str) else f"?{index}" for index, each in enumerate(items)]


@cache
def _adapter(model: type[BaseModel], name: str) -> TypeAdapter[Any]:
    field = model.model_fields[name]
    kind: Any = field.annotation
    return TypeAdapter(Annotated[(kind, *field.metadata)] if field.metadata else kind)
