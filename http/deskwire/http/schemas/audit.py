"""Records of the audit trail as the API shows them (ADR 45)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from deskwire.engine.audit.actions import ACTIONS, ObjectType
from deskwire.engine.audit.trail import AuditActorType
from deskwire.http.schemas.base import Count, Moment, OrganisationId, ProjectId, Shape

AuditId = Annotated[
    str, Field(pattern="^aud_[0-7][0-9A-HJKMNP-TV-Z]{25}$", examples=["aud_01KZ00000000000000000000R1"])
]
RequestId = Annotated[
    str, Field(pattern="^req_[0-7][0-9A-HJKMNP-TV-Z]{25}$", examples=["req_01KZ00000000000000000000Q1"])
]


class AuditActor(Shape):
    """The actor of an audit record. `name` is a user's address (null for a deleted account), a server key's label, or a machine credential's name.

    An `operator` acts on the command line; `id` is the name of their account on the machine. `system` is the service
    itself. An `anonymous` actor has not authenticated.
    """

    type: AuditActorType
    id: Annotated[str, Field(examples=["usr_01KZ0000000000000000AGENT1"])] | None
    name: Annotated[str, Field(examples=["grace@example.org"])] | None


class AuditObject(Shape):
    """The object of an action. `id` is null for an account that does not exist, and `erased_…` for an erased contact."""

    type: ObjectType
    id: Annotated[str, Field(examples=["key_01KZ00000000000000000000K1"])] | None
    name: Annotated[str, Field(examples=["CRM"])] | None


class AuditChange(Shape):
    """The value of a field before and after the action; null for none."""

    before: Any
    after: Any


class PushAttempt(Shape):
    """The last attempt to push. `error` is null after a 2xx response, `status` is null without a response."""

    at: Moment
    status: Annotated[int, Field(examples=[200])] | None
    error: Annotated[str, Field(examples=["status 503"])] | None


class AuditPush(Shape):
    """The push of an organisation's audit trail to a URL. The responses that create a secret show it; all others mask it.

    Until the receiver responds with 2xx, records wait and are sent again without a limit. `missed` counts records that
    expired before they were pushed.
    """

    id: Annotated[
        str, Field(pattern="^psh_[0-7][0-9A-HJKMNP-TV-Z]{25}$", examples=["psh_01KZ00000000000000000000H1"])
    ]
    url: Annotated[str, Field(examples=["https://siem.example.com/deskwire"])]
    secret: Annotated[str, Field(examples=["whsec_…9fQz"])]
    old_secret_until: Moment | None
    created_at: Moment
    updated_at: Moment
    pending: Count
    missed: Count
    failing_since: Moment | None
    next_attempt_at: Moment | None
    last_attempt: PushAttempt | None


class AuditRecord(Shape):
    """An audit record: an action with its actor, object, time and address.

    Repetitions within a quarter of an hour may share a record, which has the first `requestId`, their `count`,
    and the sums of their numbers in `details`.
    """

    id: AuditId
    at: Moment
    action: Annotated[str, Field(json_schema_extra={"enum": [*ACTIONS]}, examples=["key.created"])]
    actor: AuditActor
    object: AuditObject
    organisation_id: OrganisationId | None
    project_id: ProjectId | None
    changes: Annotated[dict[str, AuditChange], Field(examples=[{"label": {"before": None, "after": "CRM"}}])]
    details: Annotated[dict[str, str | int | None], Field(examples=[{}])]
    address: Annotated[str, Field(examples=["203.0.113.7"])] | None
    request_id: RequestId | None
    count: Count
    last_at: Moment
