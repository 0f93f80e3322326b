"""Parameters: of paths and headers from two tables, of queries from the models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from deskwire.http.api.routing import Route
from deskwire.http.description.openapi.schemas import Schema, tidied
from deskwire.http.schemas import (
    bulk_jobs,
    channels,
    content,
    conversations,
    customers,
    people,
    saved_views,
    snippets,
    surveys,
    tickets,
    webhooks,
    workflows,
    writing,
)
from deskwire.http.schemas.base import Shape

_IN_PATH: Final = re.compile(r"(?:([a-z0-9-]+)/)?<(?:\w+:)?(\w+)>")


class PathParameter(Struct, frozen=True):
    """A parameter in a path.

    Args:
        missing: the error code if the object does not exist.
        shape, field: the model of the object, and the field with the parameter's value.
    """

    description: str
    example: str | int
    missing: str | None = None
    shape: type[Shape] | None = None
    field: str = "id"


_ENCODED: Final = "Percent-encode it as a whole: a slash is `%2F`, a percent sign `%25`, and an id of only dots `%2E` or `%2E%2E`."
"""The encoding of caller-defined ids in a path (RFC 3986 2)."""

PATH: Final[Mapping[str, PathParameter]] = {
    "message_id": PathParameter(
        "The id of the message.",
        "msg_01KZ00000000000000000000M1",
        "message_not_found",
        conversations.Message,
    ),
    "mode": PathParameter("The draft: `reply` or `note`.", "reply", "draft_not_found"),
    "held_message_id": PathParameter(
        "The id of the held message, which becomes the message's id.",
        "msg_01KZ00000000000000000000M1",
        "held_message_not_found",
        writing.HeldMessage,
    ),
    "conversation_id": PathParameter(
        "The id of the conversation.",
        "cnv_01KZ00000000000000000000C1",
        "conversation_not_found",
        conversations.Conversation,
    ),
    "contacts/user_id": PathParameter(
        f"The id of the user in your own system, with at most 255 characters. {_ENCODED}",
        "u1",
        "contact_not_found",
        conversations.Contact,
        "userId",
    ),
    "members/user_id": PathParameter(
        "The id of the user.", "usr_01KZ0000000000000000AGENT1", "member_not_found", people.Member
    ),
    "invitation_id": PathParameter(
        "The id of the invitation.",
        "inv_01KZ00000000000000000000J1",
        "invitation_not_found",
        people.Invitation,
    ),
    "browser_session_id": PathParameter(
        "The id of the session.",
        "ses_01KZ00000000000000000000B1",
        "browser_session_not_found",
        people.BrowserSessionSummary,
    ),
    "channel_id": PathParameter(
        "The id of the channel.", "chn_01KZ00000000000000000CHAN1", "channel_not_found", channels.Channel
    ),
    "customer_session_id": PathParameter(
        "The id of the session.",
        "cse_01KZ00000000000000000000N1",
        "customer_session_not_found",
        customers.ContactSession,
    ),
    "identity_id": PathParameter(
        "The id of the identity.",
        "idn_01KZ0000000000000000000001",
        "identity_not_found",
        people.UserIdentity,
    ),
    "passkey_id": PathParameter(
        "The id of the passkey.",
        "pky_01KZ00000000000000000000P1",
        "factor_not_found",
        people.PasskeyInfo,
    ),
    "token_id": PathParameter(
        "The id of the access token.",
        "tok_01KZ00000000000000000000A1",
        "token_not_found",
        people.TokenSummary,
    ),
    "contact_id": PathParameter(
        "The id of the contact.", "con_01KZ0000000000000000C0NTCT", "contact_not_found", conversations.Contact
    ),
    "workflow_id": PathParameter(
        "The id of the workflow.",
        "wfl_01KZ00000000000000000000F1",
        "workflow_not_found",
        workflows.WorkflowSummary,
    ),
    "endpoint_id": PathParameter(
        "The id of the webhook endpoint.",
        "whk_01KZ0000000000000000000W01",
        "webhook_not_found",
        webhooks.WebhookEndpoint,
    ),
    "delivery_id": PathParameter(
        "The id of the delivery.", "dlv_01KZ00000000000000000000D1", "delivery_not_found", webhooks.Delivery
    ),
    "event_id": PathParameter("The id of the event.", "evt_01KZ00000000000000000000E1", "event_not_found"),
    "consumer_id": PathParameter(
        f"The `consumerId` of the consumer, with at most 128 characters. {_ENCODED}",
        "crm-1",
        "consumer_not_found",
        webhooks.StreamConsumer,
        "consumerId",
    ),
    "ticket_id": PathParameter(
        "The id of the ticket.", "tkt_01KZ00000000000000000000T1", "ticket_not_found", tickets.Ticket
    ),
    "view_id": PathParameter(
        "The id of the view.", "viw_01KZ0000000000000000V1EW01", "view_not_found", saved_views.SavedView
    ),
    "bulk_job_id": PathParameter(
        "The id of the job.", "blk_01KZ0000000000000000000B1K", "bulk_job_not_found", bulk_jobs.BulkJob
    ),
    "snippet_id": PathParameter(
        "The id of the snippet.", "snp_01KZ0000000000000000SN1PPT", "snippet_not_found", snippets.Snippet
    ),
    "role_id": PathParameter(
        "The id of the role: `owner`, `admin`, `agent`, `viewer`, or the id of one of the organisation's own.",
        "rol_01KZ0000000000000000000R01",
        "role_not_found",
        people.Role,
    ),
    "team_id": PathParameter(
        "The id of the team.", "team_01KZ0000000000000000TEAM01", "team_not_found", tickets.Team
    ),
    "upload_id": PathParameter(
        "The id of the upload.", "upl_01KZ00000000000000000000VP", "upload_not_found", tickets.Upload
    ),
    "upload_id/name": PathParameter("The name of the file.", "label.png"),
    "survey_id": PathParameter(
        "The id of the survey.", "srv_01KZ00000000000000000000S1", "survey_not_found", surveys.SurveySummary
    ),
    "versions/version": PathParameter(
        "The number of the version.", 1, "survey_version_not_found", surveys.SurveyVersionSummary, "version"
    ),
    "response_id": PathParameter(
        "The id of the survey response.",
        "rsp_01KZ00000000000000000000R1",
        "response_not_found",
        surveys.SurveyResponse,
    ),
    "session_id": PathParameter(
        "The id of the session, which is the id of a contact.",
        "con_01KZ0000000000000000C0NTCT",
        "session_not_found",
        conversations.Contact,
    ),
    "entry_name": PathParameter(
        f"The name of the memory entry. {_ENCODED}",
        "shoe size",
        "memory_entry_not_found",
        content.MemoryEntry,
        "name",
    ),
    "entry_id": PathParameter(
        f"The id of the entry, as `<type>:<id>`. {_ENCODED}",
        "statictranslation:checkout.title",
        "entry_not_found",
        content.TranslationEntry,
        "entryId",
    ),
    "organisation_id": PathParameter(
        "The id of the organisation.",
        "org_01KZ0000000000000000000RG1",
        "organisation_not_found",
        people.Organisation,
    ),
    "project_id": PathParameter(
        "The id of the project.", "prj_01KZ000000000000000000SH0P", "project_not_found", people.Project
    ),
    "key_id": PathParameter(
        "The id of the server key.", "key_01KZ00000000000000000000K1", "key_not_found", people.ServerKey
    ),
    "credential_id": PathParameter(
        "The id of the machine credential.",
        "mcr_01KZ0000000000000000000M01",
        "credential_not_found",
        people.MachineCredential,
    ),
    "stream_id": PathParameter(
        "The id of the stream, which its `hello` names.", "str_01KZ00000000000000000STR01", "stream_not_found"
    ),
    "docs/asset": PathParameter("The name of the file.", "explorer.js"),
    "place": PathParameter("The place in the desk.", "c/cnv_01KZ000000000000000000C0NV"),
    "tree": PathParameter("The digest of the files.", "0123456789abcdef"),
    "file": PathParameter("The path of the file.", "app.js"),
}
"""The parameters in paths, by name; for an ambiguous name, with the preceding segment."""


class HeaderParameter(Struct, frozen=True):
    """A header of requests to the routes for which `on` is true."""

    name: str
    description: str
    example: str
    on: Callable[[Route], bool]
    required: bool = False
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})


HEADERS: Final = (
    HeaderParameter(
        "project",
        "The id of the project. Ignored with a server key, and not needed with a machine credential.",
        "prj_01KZ000000000000000000SH0P",
        lambda route: route.access.kind == "either",
    ),
    HeaderParameter(
        "project",
        "The id of the project. Optional with a machine credential.",
        "prj_01KZ000000000000000000SH0P",
        lambda route: (
            route.access.kind == "dashboard" and not route.access.by_parameter and route.access.machines
        ),
        required=True,
    ),
    HeaderParameter(
        "project",
        "The id of the project.",
        "prj_01KZ000000000000000000SH0P",
        lambda route: (
            route.access.kind == "dashboard" and not route.access.by_parameter and not route.access.machines
        ),
        required=True,
    ),
    HeaderParameter(
        "project",
        "The id of the project, if no parameter names it.",
        "prj_01KZ000000000000000000SH0P",
        lambda route: route.access.by_parameter,
    ),
    HeaderParameter(
        "Last-Event-ID",
        "The id of the last event that you have; it overrides `after`.",
        "evt_01KZ00000000000000000000E1",
        lambda route: route.operation_id == "followStream",
    ),
    HeaderParameter(
        "project",
        "The id of a project, whose organisation is used if there is no `organisationId`.",
        "prj_01KZ000000000000000000SH0P",
        lambda route: route.operation_id == "getPermissions",
    ),
    HeaderParameter(
        "Idempotency-Key",
        "A unique key of your choice. Within 24 hours, the same request with the same key is carried out only once, and gets "
        "the same response.",
        "5f0c6a1e-order-A-1001",
        lambda route: route.idempotent,
        schema={"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[\\x20-\\x7e]+$"},
    ),
    HeaderParameter(
        "If-Match",
        "The `ETag` of the object as you have read it. If the object was changed, the change is refused with 412 "
        "and the current `ETag`.",
        '"9f86d081884c7d659a2feaa0c55ad015"',
        lambda route: route.tagged and route.method != "GET",
    ),
    HeaderParameter(
        "If-None-Match",
        "With `*`, the content is stored only if the entry has none in this language; otherwise the response is 412.",
        "*",
        lambda route: route.operation_id == "putEntry",
    ),
    HeaderParameter(
        "Range",
        "The part of the file to download (RFC 9110).",
        "bytes=0-1023",
        lambda route: route.operation_id == "fetchFile",
    ),
    HeaderParameter(
        "If-None-Match",
        "The `ETag` of your copy.",
        '"5891b5b5"',
        lambda route: route.operation_id in ("fetchFile", "openapiDocument", "errorPage", "asyncapiDocument"),
    ),
)
"""The headers of requests besides `Authorization`. To add one, add a line."""


def path_parameters(route: Route) -> Iterator[tuple[str, PathParameter]]:
    """Yield the public name and description of each parameter in the route's path, from left to right.

    Raises LookupError for a parameter that is not in the table.
    """
    before = ""
    for segment, name in _IN_PATH.findall(route.path):
        where = segment or before
        known = PATH.get(f"{where}/{name}") or PATH.get(name)
        if known is None:
            raise LookupError(f"{route.path}: describe <{name}> in {__name__}.PATH")
        yield to_camel(name), known
        before = name


def parameters(route: Route) -> list[Schema]:
    """Return the parameters of a route: of its path, query and headers."""
    return [*_in_path(route), *_in_query(route.query), *_in_headers(route)]


def _in_path(route: Route) -> Iterator[Schema]:
    for name, each in path_parameters(route):
        kind = {"type": "integer", "minimum": 1} if isinstance(each.example, int) else _text(each)
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": each.description,
            "schema": kind,
            "example": each.example,
        }


def _text(each: PathParameter) -> Schema:
    return {"type": "string", "minLength": 1}


def _in_query(model: type[BaseModel]) -> Iterator[Schema]:
    schema = tidied(model.model_json_schema())
    known = schema.get("$defs", {})
    for name, described in schema.get("properties", {}).items():
        parameter = {"name": name, "in": "query", "required": name in schema.get("required", ())}
        description = described.pop("description", None)
        if description:
            parameter["description"] = description
        yield {**parameter, "schema": _without_null(described, known)}


def _without_null(described: Schema, known: Mapping[str, Schema]) -> Schema:
    """Return the schema of a parameter, which may be omitted but is never null."""
    rest: dict[str, Any] = {key: value for key, value in described.items() if key != "anyOf"}
    if rest.get("default", ...) is None:
        del rest["default"]
    for option in described.get("anyOf", ()):
        if option.get("type") != "null":
            rest = {**option, **rest}
    reference = rest.pop("$ref", None)
    return {**known[reference.rpartition("/")[2]], **rest} if reference else rest


def _in_headers(route: Route) -> Iterator[Schema]:
    for each in HEADERS:
        if each.on(route):
            yield {
                "name": each.name,
                "in": "header",
                "required": each.required,
                "description": each.description,
                "schema": dict(each.schema),
                "example": each.example,
            }
