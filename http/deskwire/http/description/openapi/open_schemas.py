"""Opens the schemas of responses and events to the additions of later releases (ADR 23).

Generated clients refuse unknown fields, enum values and members of a union, so a release that adds one would stop
them. In responses and events of the served description, therefore,

- an object accepts unknown fields,
- a string with known values lists them as `x-extensible-enum`,
- a union of objects is one object with the fields of all its members,
- a value has no limit, pattern or constant: limits may be raised, and ids become longer,
- a field that may have any value, or an array or null, is not required: generated models in Go do not write its null.

Requests stay closed. The default of a field or parameter is in its description only: generators for TypeScript require a
field with a `default`, and those for Go send it. A schema of both requests and responses has a closed twin for
requests, with the suffix `Input`. Every integer has 64 bits: without `format`, generators for Go and Java give it 32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct, field

from deskwire.http.description.openapi.references import PREFIX, reachable, references, renamed
from deskwire.http.description.openapi.schemas import Schema

EXTENSIBLE: Final = "x-extensible-enum"
UNION: Final = "x-union"
"""The public name of a union, which becomes a component."""

_LIMITS: Final = frozenset(
    {
        "pattern",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "propertyNames",
    }
)
_DISTINCT_MAX: Final = 2
"""A field with more object types than this is any object."""


def opened(document: Schema) -> Schema:
    """Return the document with open responses and events, and closed requests."""
    components = document["components"]["schemas"]
    operations = [each for path in document["paths"].values() for each in path.values()]
    requested = reachable([each.get("requestBody") for each in operations], components)
    answers = [each["responses"] for each in operations]
    answered = reachable([answers, document["webhooks"], document["components"]["responses"]], components)
    opener = Opener(components)
    twins = {name: f"{name}Input" for name in requested.keys() & answered.keys()}
    closer = _Closer(twins)
    paths = {
        path: {method: _operation(each, opener, closer) for method, each in methods.items()}
        for path, methods in document["paths"].items()
    }
    schemas = {twins.get(name, name): closer.close(schema) for name, schema in requested.items()}
    schemas |= closer.made
    schemas |= opener.reachable([_answers(paths), document["webhooks"], document["components"]["responses"]])
    result: Schema = _with_64_bits(
        {
            **document,
            "paths": paths,
            "components": {**document["components"], "schemas": dict(sorted(schemas.items()))},
        }
    )
    return result


def _answers(paths: Mapping[str, Schema]) -> list[Schema]:
    return [each["responses"] for path in paths.values() for each in path.values()]


def _operation(operation: Schema, opener: Opener, closer: _Closer) -> Schema:
    result = {**operation, "responses": opener.open(operation["responses"])}
    if "requestBody" in operation:
        result["requestBody"] = closer.close(operation["requestBody"])
    if "parameters" in operation:
        result["parameters"] = [_parameter(each) for each in operation["parameters"]]
    return result


def _parameter(parameter: Schema) -> Schema:
    """Return a parameter with its default as a sentence of its description."""
    schema = parameter["schema"]
    if "default" not in schema:
        return parameter
    moved = _without_default({**schema, "description": parameter.get("description", "")})
    return {
        **parameter,
        "description": moved["description"],
        "schema": {key: value for key, value in schema.items() if key != "default"},
    }


def _with_64_bits(value: Any) -> Any:
    """Return a document whose integers are of 64 bits."""
    if isinstance(value, list):
        return [_with_64_bits(each) for each in value]
    if not isinstance(value, dict):
        return value
    result = {
        key: each if key in ("examples", "example") else _with_64_bits(each) for key, each in value.items()
    }
    return {**result, "format": "int64"} if result.get("type") == "integer" else result


class _Closer(Struct):
    """Makes the schemas of requests: names of twins, named unions, defaults in descriptions.

    Args:
        twins: the names of schemas that responses have as well, and of their twins.
    """

    twins: Mapping[str, str]
    made: dict[str, Schema] = field(default_factory=dict)

    def close(self, schema: Schema) -> Schema:
        """Return a schema of a request."""
        result: Schema = self._inner(renamed(schema, self.twins))
        return result

    def _inner(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._inner(each) for each in value]
        if not isinstance(value, dict):
            return value
        result = {
            key: self._inner(each) if key not in ("examples", "example") else each
            for key, each in value.items()
        }
        name = result.pop(UNION, None)
        if name is not None:
            self.made[f"{name}Input"] = result
            return {"$ref": f"{PREFIX}{name}Input"}
        properties = result.get("properties")
        if isinstance(properties, dict) and result.get("type") == "object":
            result["properties"] = {name: _without_default(each) for name, each in properties.items()}
        return result


def _without_default(schema: Schema) -> Schema:
    """Return the schema of a field with its default as a sentence of the description."""
    if "default" not in schema:
        return schema
    rest = {key: value for key, value in schema.items() if key != "default"}
    if schema["default"] in ("", [], {}):
        return rest
    sentence = f"Default: `{orjson.dumps(schema['default']).decode().strip(chr(34))}`."
    return {**rest, "description": f"{rest.get('description', '')} {sentence}".strip()}


class Opener(Struct):
    """Opens schemas.

    Args:
        components: all closed schemas by name.
    """

    components: Mapping[str, Schema]
    made: dict[str, Schema] = field(default_factory=dict)

    def open(self, value: Any) -> Any:
        """Return a schema, or a value that contains schemas, with everything in it opened."""
        if isinstance(value, list):
            return [self.open(each) for each in value]
        if not isinstance(value, Mapping):
            return value
        options = value.get("oneOf") or value.get("anyOf")
        if options is not None:
            return self._open_union(value, options)
        return {key: self._keyword(key, each) for key, each in _open_values(value).items()}

    def reachable(self, root: Any) -> dict[str, Schema]:
        """Return the opened components that an opened value refers to, directly or indirectly."""
        found: dict[str, Schema] = {}
        ahead = [*references(root)]
        while ahead:
            name = ahead.pop()
            if name not in found:
                found[name] = self.made.get(name) or self._component(name)
                ahead += references(found[name])
        return dict(sorted(found.items()))

    def _component(self, name: str) -> Schema:
        schema = self.components[name]
        options = schema.get("oneOf") or schema.get("anyOf")
        if options is not None and all("$ref" in each for each in options):
            self._flattened(name, [self._resolved(each) for each in options], schema.get("description", ""))
            return self.made[name]
        result: Schema = self.open(schema)
        return result

    def _keyword(self, key: str, value: Any) -> Any:
        if key in ("examples", "example", "default", "enum", "const", EXTENSIBLE, "required"):
            return value
        if key in ("properties", "$defs"):
            return {name: self._property(name, each) for name, each in value.items()}
        return self.open(value)

    def _property(self, name: str, schema: Schema) -> Schema:
        # The `type` of an event's own schema stays constant: it is what the schema is chosen by.
        if name == "type" and isinstance(schema.get("const"), str):
            return schema
        result: Schema = self.open(schema)
        return result

    def _open_union(self, schema: Mapping[str, Any], options: Sequence[Schema]) -> Schema:
        rest = {
            key: value
            for key, value in schema.items()
            if key not in ("oneOf", "anyOf", "discriminator", UNION)
        }
        present = [each for each in options if each.get("type") != "null"]
        if len(present) == 1:
            merged = self.open(present[0])
        else:
            merged = self._merged(present, schema.get(UNION), rest.pop("description", ""))
        if len(present) < len(options):
            return {**rest, "anyOf": [merged, {"type": "null"}]}
        return {**merged, **rest} if "$ref" not in merged or not rest else {**rest, **merged}

    def _merged(self, options: Sequence[Schema], name: str | None = None, description: str = "") -> Schema:
        """Return one open schema for several."""
        distinct = _distinct(options)
        if len(distinct) == 1:
            result: Schema = self.open(distinct[0] if _alike(options) else _without_texts(distinct[0]))
            return result
        values = [_values(each) for each in distinct]
        if all(each is not None for each in values):
            known = [value for each in values for value in each or ()]
            return _with_values(list(dict.fromkeys(known)), {"type": "string"})
        if any(each.get("type") == "null" or _nullable(each) for each in distinct):
            present = [part for each in distinct for part in _present(each)]
            return {"anyOf": [self._merged(present, name, description), {"type": "null"}]}
        return self._merged_by_type(distinct, name, description)

    def _merged_by_type(self, distinct: Sequence[Schema], name: str | None, description: str) -> Schema:
        objects = [self._resolved(each) for each in distinct]
        if all("properties" in each for each in objects):
            if name is None and len(distinct) > _DISTINCT_MAX:
                return {"type": "object", "additionalProperties": True}
            named = name or "Or".join(each["$ref"].rpartition("/")[2] for each in distinct)
            return self._flattened(named, objects, description)
        types = {each.get("type") for each in distinct}
        if types == {"array"}:
            return {"type": "array", "items": self._merged([each["items"] for each in distinct])}
        if len(types) == 1 and types <= {"string", "integer", "number", "boolean"}:
            return {"type": types.pop()}
        return {"anyOf": [self.open(each) for each in distinct]}

    def _flattened(self, name: str, members: Sequence[Schema], description: str) -> Schema:
        """Make the component that has the fields of all members. Return a reference to it."""
        if name not in self.made:
            names = dict.fromkeys(each for member in members for each in member["properties"])
            fields = {
                each: [member["properties"][each] for member in members if each in member["properties"]]
                for each in names
            }
            required = [each for each in names if all(each in m.get("required", ()) for m in members)]
            each_of = " Or: ".join(dict.fromkeys(each.get("description", "") for each in members))
            words = [description or each_of, _by_type(members, fields)]
            merged = {each: self._merged(options) for each, options in fields.items()}
            self.made[name] = {
                "type": "object",
                "description": "\n\n".join(each for each in words if each),
                "properties": merged,
                "required": _always_written(required, merged),
                "additionalProperties": True,
            }
        return {"$ref": f"{PREFIX}{name}"}

    def _resolved(self, schema: Schema) -> Schema:
        reference = schema.get("$ref")
        return schema if reference is None else self.components[reference.rpartition("/")[2]]


def _open_values(schema: Mapping[str, Any]) -> Schema:
    """Return a schema whose own keywords are open."""
    result = {key: value for key, value in schema.items() if key not in _LIMITS}
    if isinstance(result.get("required"), list):
        result["required"] = _always_written(result["required"], result.get("properties", {}))
        if not result["required"]:
            del result["required"]
    if result.get("additionalProperties") is False:
        result["additionalProperties"] = True  # generators for Go refuse unknown fields without it
    values = _values(result)
    if values is not None:
        return _with_values(values, {k: v for k, v in result.items() if k not in ("enum", "const")})
    constant = result.pop("const", None)
    if constant is not None:
        result.setdefault("type", "boolean" if isinstance(constant, bool) else "integer")
        result.setdefault("examples", [constant])
    return result


def _always_written(required: Sequence[str], fields: Mapping[str, Schema]) -> list[str]:
    """Return the required fields whose null generated models in Go write."""
    return [name for name in required if name not in fields or not _left_out(fields[name])]


def _left_out(schema: Schema) -> bool:
    options = schema.get("anyOf", [schema])
    types = {"any" if "$ref" not in each and "type" not in each else each.get("type") for each in options}
    return types in ({"any"}, {"array", "null"})


def _values(schema: Mapping[str, Any]) -> list[str] | None:
    """Return the known values of a string; None for any other schema."""
    listed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    return listed if isinstance(listed, list) and all(isinstance(each, str) for each in listed) else None


def _with_values(values: list[str], rest: Schema) -> Schema:
    """Return the schema of a string with known values, to which later releases may add."""
    sentence = f"Known values: {', '.join(f'`{each}`' for each in values)}; a later release may add others."
    described = f"{rest.get('description', '')} {sentence}".strip()
    return {**rest, "type": "string", EXTENSIBLE: values, "description": described}


def _distinct(options: Sequence[Schema]) -> list[Schema]:
    """Return the schemas that differ in more than their texts."""
    found: dict[bytes, Schema] = {}
    for each in options:
        found.setdefault(orjson.dumps(_without_texts(each), option=orjson.OPT_SORT_KEYS), each)
    return [*found.values()]


def _without_texts(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in ("description", "examples")}


def _alike(options: Sequence[Schema]) -> bool:
    return all(each.get("description") == options[0].get("description") for each in options)


def _nullable(schema: Schema) -> bool:
    return any(each.get("type") == "null" for each in schema.get("anyOf", ()))


def _present(schema: Schema) -> list[Schema]:
    """Return the options of a schema that are not null."""
    return [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]


def _by_type(members: Sequence[Schema], fields: Mapping[str, Sequence[Schema]]) -> str:
    """Return a sentence about the fields that only some types have; empty without such fields."""
    lines = []
    for member in members:
        kind = member["properties"].get("type", {}).get("const")
        own = [name for name in member["properties"] if len(fields[name]) < len(members)]
        if kind is not None and own:
            lines.append(f"`{kind}` has {', '.join(f'`{name}`' for name in own)}")
    return f"Some fields depend on `type`: {'; '.join(lines)}." if lines else ""
