"""References between the schemas of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

PREFIX: Final = "#/components/schemas/"


def reachable(root: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the directly or indirectly referenced schemas, by name."""
    found: set[str] = set()
    ahead = list(references(root))
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead.extend(references(known[name]))
    return {name: known[name] for name in sorted(found)}


def references(value: Any) -> Iterator[str]:
    """Yield the names of the directly referenced schemas."""
    if isinstance(value, Mapping):
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith(PREFIX):
            yield reference.removeprefix(PREFIX)
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value with its references, and the mappings of its discriminators, under other names."""
    if isinstance(value, list):
        return [renamed(each, names) for each in value]
    if isinstance(value, str) and value.startswith(PREFIX):
        model = value.removeprefix(PREFIX)
        return PREFIX + names.get(model, model)
    if not isinstance(value, Mapping):
        return value
    return {key: renamed(each, names) for key, each in value.items()}
