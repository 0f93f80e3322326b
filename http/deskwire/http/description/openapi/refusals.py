"""The refusals of a route: by its access, path, query and body, and its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.core.http1 import phrase
from deskwire.http.api.problems import problem_type
from deskwire.http.api.routing import BASE, AccessKind, Route
from deskwire.http.description.error_codes import CODES, Code
from deskwire.http.description.openapi.parameters import path_parameters
from deskwire.http.description.openapi.schemas import Schema

_KEY: Final = (
    "missing_credential",
    "bad_credential",
    "invalid_server_key",
    "revoked_server_key",
    "key_expired",
    "wrong_credential_kind",
    "repeated_header",
)
_SESSION: Final = ("session_ended", "bad_session_cookie", "cross_site_request")
_TOKEN: Final = (
    *_SESSION,
    "missing_credential",
    "bad_credential",
    "invalid_token",
    "token_ended",
    "token_expired",
    "signing_keys_unavailable",
    "wrong_credential_kind",
    "repeated_header",
)
_MACHINE: Final = (
    "expired_machine_credential",
    "invalid_machine_credential",
    "revoked_machine_credential",
    "rotated_machine_credential",
)
_CALLERS: Final = frozenset({"server_key", "user", "organisation", "project", "dashboard", "either"})
"""Kinds of access that identify a machine credential, even if they refuse it."""
_ACCESS: Final[Mapping[AccessKind, tuple[str, ...]]] = {
    "none": (),
    "visitor": ("cross_site_request",),
    "server_key": _KEY,
    "user": _TOKEN,
    "organisation": (*_TOKEN, "organisation_not_found"),
    "project": (*_TOKEN, "project_not_found"),
    "dashboard": (*_TOKEN, "missing_project", "project_not_found"),
    "either": (*_KEY, *_TOKEN, "missing_project", "project_not_found"),
    "customer": (
        "missing_credential",
        "bad_credential",
        "repeated_header",
        "wrong_credential_kind",
        "session_ended",
        "identity_required",
        "origin_not_allowed",
        "channel_disabled",
    ),
    "metrics": (
        "missing_credential",
        "bad_credential",
        "repeated_header",
        "invalid_metrics_token",
        "metrics_local_only",
    ),
}
"""The error codes of each kind of access."""


_UNCOUNTED: Final = frozenset({"none", "metrics"})
"""Kinds of access that count against no rate limit of a project or user."""


class RefusalRule(Struct, frozen=True):
    """The error codes of all routes for which `on` is true."""

    codes: tuple[str, ...]
    on: Callable[[Route], bool]


RULES: Final = (
    RefusalRule(("bad_query", "bad_request", "internal_error"), lambda route: True),
    RefusalRule(("bad_path", "nul_character"), lambda route: "<" in route.path),
    RefusalRule(("out_of_touch", "overloaded", "too_many_at_once"), lambda route: True),
    RefusalRule(("too_many_failures",), lambda route: route.access.kind not in ("none", "visitor")),
    RefusalRule(("rate_limited",), lambda route: route.access.kind not in _UNCOUNTED),
    RefusalRule(
        (
            "bad_idempotency_key",
            "idempotency_answer_erased",
            "idempotency_in_progress",
            "idempotency_mismatch",
        ),
        lambda route: route.idempotent,
    ),
    RefusalRule(("permission_denied",), lambda route: route.access.permission is not None),
    RefusalRule(
        ("second_factor_required_here",),
        lambda route: route.access.kind in ("dashboard", "either", "organisation", "project"),
    ),
    RefusalRule(("fresh_proof_required",), lambda route: route.access.fresh),
    RefusalRule(("session_required",), lambda route: route.access.session_only),
    RefusalRule(_MACHINE, lambda route: route.access.kind in _CALLERS),
    RefusalRule(
        ("person_required",), lambda route: route.access.kind in _CALLERS and not route.access.machines
    ),
    RefusalRule(("project_not_found",), lambda route: route.access.kind in _CALLERS),
    RefusalRule(("body_timeout", "body_too_large"), lambda route: reads_body(route)),
    RefusalRule(("invalid_input",), lambda route: reads_body(route)),
    RefusalRule(
        ("malformed_json", "unsupported_media_type"), lambda route: reads_body(route) and route.json_only
    ),
    RefusalRule(("read_timeout", "storage_failed"), lambda route: in_storage(route)),
    RefusalRule(("outcome_unknown",), lambda route: in_storage(route) and route.method != "GET"),
    RefusalRule(("not_confirmed",), lambda route: route.outdates),
    RefusalRule(("shutting_down",), lambda route: in_storage(route) and route.method != "GET"),
    RefusalRule(("contact_merged",), lambda route: "/contacts/<" in route.path and route.method != "PUT"),
    RefusalRule(
        ("conversation_busy",),
        lambda route: "<conversation_id>" in route.path and route.method != "GET",
    ),
    RefusalRule(
        ("conversation_busy",),
        lambda route: route.operation_id in ("createConversation", "dashboardStartConversation"),
    ),
    RefusalRule(
        ("reserved_user_id",),
        lambda route: (
            route.operation_id
            in ("createConversation", "createResponse", "dashboardStartConversation", "putContactIdentity")
        ),
    ),
)
"""Error codes of many routes. To add some, add a line; codes of a single route are in its `errors`."""

_DETAIL: Final[Mapping[str, Any]] = {
    "bad_query": {
        "in": "query",
        "pointer": "/limit",
        "code": "too_large",
        "message": "This must be at most 200.",
    },
    "invalid_input": {
        "in": "body",
        "pointer": "/title",
        "code": "unknown_field",
        "message": "There is no such field.",
    },
}
"""The content of `errors` in examples."""


_FURTHER: Final[Mapping[str, Any]] = {
    "visitor_limit": {
        "challenge": {
            "algorithm": "SHA-256",
            "challenge": "1-17-1793534400000-c2lnbmF0dXJl",
            "difficulty": 17,
            "expiresAt": "2026-11-01T12:00:00.000Z",
        }
    },
    "fresh_proof_required": {"methods": ["password"]},
    "contact_merged": {"mergedInto": {"id": "con_01KZ0000000000000000C0NTCT", "userId": "u1"}},
}
"""Additional fields in examples."""


def reads_body(route: Route) -> bool:
    """Return whether the body is read completely before the route's handler is called."""
    return not route.streamed and (route.body is not None or not route.json_only)


def in_storage(route: Route) -> bool:
    """Return whether the route uses stored objects."""
    return route.path.startswith(BASE) and (route.access.kind != "none" or route.body is not None)


def refusals(route: Route) -> list[Code]:
    """Return the refusals of a route by status. Raises LookupError for an unregistered code."""
    codes = {*_ACCESS[route.access.kind], *_missing(route), *route.errors}
    for rule in RULES:
        if rule.on(route):
            codes.update(rule.codes)
    unknown = codes - {each.code for each in CODES}
    if unknown:
        raise LookupError(
            f"{route.operation_id}: {sorted(unknown)} are not in deskwire.http.description.error_codes"
        )
    return sorted((each for each in CODES if each.code in codes), key=lambda each: (each.status, each.code))


def _missing(route: Route) -> Iterator[str]:
    """Yield the codes for missing objects in the path. The last object of a PUT can't be missing, because PUT creates it."""
    named = list(path_parameters(route))
    if route.method == "PUT" and route.path.endswith(">"):
        named.pop()
    yield from (each.missing for _, each in named if each.missing is not None)


class RefusalDescriptions:
    """The responses to refused requests, once for each set of codes.

    Args:
        problem: the schema of the problem document.
        headers: the headers of a response with a status, by name.
        special: the schemas of documents with additional fields, by code.
    """

    def __init__(
        self, problem: Schema, headers: Callable[[int], Schema], special: Mapping[str, Schema]
    ) -> None:
        self._problem = problem
        self._special = special
        self._headers = headers
        self._used: set[str] = set()
        self.components: dict[str, Schema] = {}

    def of(self, route: Route) -> dict[str, Schema]:
        """Return references to the refusals of a route by status."""
        grouped = groupby(refusals(route), key=lambda each: each.status)
        return {str(status): self._reference(status, list(codes)) for status, codes in grouped}

    def _reference(self, status: int, codes: list[Code]) -> Schema:
        name = ".".join((str(status), *(each.code for each in codes)))
        self._used.update(each.code for each in codes)
        # Of two, the last one has the fields of the first, too: `ConversationMovedOnProblem`.
        document = [
            self._problem,
            *(self._special[each.code] for each in codes if each.code in self._special),
        ][-1]
        self.components[name] = {
            "description": "\n".join(f"- `{each.code}`: {each.meaning}" for each in codes),
            "headers": self._headers(status),
            "content": {
                "application/problem+json": {
                    "schema": document,
                    "examples": {each.code: {"$ref": f"#/components/examples/{each.code}"} for each in codes},
                }
            },
        }
        return {"$ref": f"#/components/responses/{name}"}

    def response(self, reference: Schema) -> Schema:
        """Return the response that a reference names."""
        return self.components[reference["$ref"].rpartition("/")[2]]

    def examples(self) -> dict[str, Schema]:
        """Return an example of a problem document for each code referenced so far."""
        used = (each for each in CODES if each.code in self._used)
        return {each.code: {"summary": each.meaning, "value": _example(each)} for each in used}


def _example(code: Code) -> Schema:
    document = {
        "type": problem_type(code.code),
        "title": phrase(code.status),
        "status": code.status,
        "detail": code.meaning,
        "code": code.code,
        "requestId": "req_01KZ000000000000000000REQ1",
    }
    detail = _DETAIL.get(code.code)
    document |= _FURTHER.get(code.code, {})
    return document if detail is None else {**document, "errors": [detail], "errorsTotal": 1}
