"""All models of the API as JSON Schema 2020-12, by name. pydantic generates the schemas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from deskwire.http.description.openapi.references import PREFIX, renamed
from deskwire.http.description.tables import plain

Schema = dict[str, Any]

_TEMPLATE: Final = f"{PREFIX}{{model}}"
_MAPS: Final = ("properties", "$defs", "patternProperties")
"""Keywords whose members are schemas by name, so the names are not keywords."""

_VALUES: Final = ("examples", "example", "default", "const", "enum")
"""Keywords that hold values instead of schemas."""


class Schemas:
    """The schemas of some types: `of` returns a reference, `components` has the schemas.

    Args:
        types: models, or unions of them.
    """

    def __init__(self, types: Iterable[Any]) -> None:
        self._places = {each: index for index, each in enumerate(dict.fromkeys(types))}
        inputs = [(index, "validation", TypeAdapter(each)) for each, index in self._places.items()]
        found, shared = TypeAdapter.json_schemas(inputs, ref_template=_TEMPLATE)  # type: ignore[arg-type]
        names = _public(shared.get("$defs", {}))
        self._found: dict[int, Schema] = {
            key: renamed(tidied(schema), names) for (key, _), schema in found.items()
        }
        self.components: dict[str, Schema] = {
            names[key]: renamed(tidied(schema), names)
            for key, schema in sorted(shared.get("$defs", {}).items(), key=lambda each: names[each[0]])
        }

    def of(self, wanted: Any) -> Schema:
        """Return the schema of one of the types, usually a reference."""
        return self._found[self._places[wanted]]


def _public(schemas: Mapping[str, Schema]) -> dict[str, str]:
    """Return the public name of each schema: its title (`public_name`). Raises LookupError for a duplicate."""
    names = {key: str(schema.get("title", key)) for key, schema in schemas.items()}
    twice = [name for name, count in Counter(names.values()).items() if count > 1]
    if twice:
        raise LookupError(f"two schemas have the name {twice[0]}: give one another `title`")
    return names


def tidied(schema: Mapping[str, Any]) -> Schema:
    """Return a schema without titles, without sources in descriptions, and without null defaults.

    `x-shape` names the schema of a field that the model itself accepts as any JSON value.
    """
    result: Schema = {}
    for keyword, value in schema.items():
        if keyword == "title" or (keyword == "default" and value is None):
            continue
        if keyword == "x-shape":
            result["$ref"] = _TEMPLATE.format(model=value)
        elif keyword == "description":
            result[keyword] = plain(value)
        elif keyword in _MAPS:
            result[keyword] = {name: tidied(each) for name, each in value.items()}
        else:
            result[keyword] = value if keyword in _VALUES else _inner(value)
    return result


def _inner(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tidied(value)
    return [_inner(each) for each in value] if isinstance(value, list) else value
