"""The names of operations and of the groups that they are listed in."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Final

from pydantic.alias_generators import to_camel

from deskwire.http.routing import Route
from deskwire.reference.openapi.schemas import Schema
from deskwire.reference.tables import plain

_TAGS: Final[Mapping[str, str]] = {
    "s2s": "Conversations",
    "dashboard": "Conversations for agents",
    "contact_export": "Contacts",
    "events": "Events",
    "project": "Project of a server key",
    "stream": "Realtime stream",
    "tokens": "Signing in",
    "users": "Signed-in user",
    "voice": "Voice replies",
    "survey_responses": "Survey responses",
    "survey_insights": "Survey insights",
    "audit": "Audit trail",
    "description": "API description",
}
"""Names of groups that are not just the module's."""

_AMBIGUOUS: Final = frozenset({"dashboard"})
"""Modules whose handlers have the names of another one's, so that they need their own in front."""


def operation_id(route: Route) -> str:
    """The stable name of the operation: that of the handler, in camel case."""
    module, _, handler = route.name.partition(".")
    return to_camel(f"{module}_{handler}" if module in _AMBIGUOUS else handler)


def tag(route: Route) -> str:
    """The group that the route is listed in."""
    module = route.name.partition(".")[0]
    return _TAGS.get(module) or module.replace("_", " ").capitalize()


def tags(routes: Iterable[Route]) -> list[Schema]:
    """All groups, in the order of the routes, each with what its module says of itself."""
    described = {tag(route): plain(sys.modules[route.handler.__module__].__doc__) for route in routes}
    return [{"name": name, "description": description} for name, description in described.items()]
