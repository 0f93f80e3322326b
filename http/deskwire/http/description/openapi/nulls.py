"""The fields of patches that null clears; all other fields may be omitted, but are never null."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from deskwire.http.api.input.unknown_fields import without_null
from deskwire.http.api.input.validation import Nulls
from deskwire.http.api.routing import Route
from deskwire.http.description.openapi.schemas import Schema
from deskwire.http.schemas.base import public_name


def refused(routes: Iterable[Route]) -> dict[type[BaseModel], frozenset[str]]:
    """Return the fields of each body that refuse null, from the routes' prechecks.

    Raises LookupError if two routes differ for the same body, because there is one schema.
    """
    found: dict[type[BaseModel], frozenset[str]] = {}
    for route in routes:
        for nulls_check in route.further:
            if isinstance(nulls_check, Nulls) and route.body is not None:
                model = _patch(route.body, nulls_check)
                fields = frozenset(model.model_fields) - nulls_check.nullable
                if found.setdefault(model, fields) != fields:
                    raise LookupError(
                        f"{route.operation_id}: another route has other nulls() for {model.__name__}"
                    )
    return found


def _patch(body: type[BaseModel], nulls_check: Nulls) -> type[BaseModel]:
    """Return the model of a precheck: the body, or the model of a field."""
    if nulls_check.within is None:
        return body
    inner: type[BaseModel] = without_null(body.model_fields[nulls_check.within].annotation)
    return inner


def without_refused(components: Mapping[str, Schema], routes: Iterable[Route]) -> None:
    """Remove null from the schemas of fields that refuse it."""
    for model, fields in refused(routes).items():
        properties = components[public_name(model)]["properties"]
        for name in fields:
            alias = model.model_fields[name].alias or to_camel(name)
            properties[alias] = never_null(properties[alias])


def never_null(schema: Schema) -> Schema:
    """Return a schema without null."""
    options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    if not options:
        return schema
    return {**options[0], **rest} if len(options) == 1 else {**rest, "anyOf": options}
