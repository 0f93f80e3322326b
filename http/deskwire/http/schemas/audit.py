"""Records of the audit trail as the API shows them (ADR 45)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from deskwire.engine.audit.actions import ACTIONS, ObjectType
from deskwire.engine.audit.trail import ActorType
from deskwire.http.schemas.base import Count, Moment, OrganisationId, ProjectId, Shape

AuditId = Annotated[
    str, Field(pattern="^aud_[0-7][0-9A-HJKMNP-TV-Z]{25}$", examples=["aud_01KZ00000000000000000000R1"])
]
RequestId = Annotated[
    str, Field(pattern="^req_[0-7][0-9A-HJKMNP-TV-Z]{25}$", examples=["req_01KZ00000000000000000000Q1"])
]


class AuditActor(Shape):
    """Who did it. `name` is a user's address, or a server key's label; null once the account is deleted.

    The `operator` did it at the command line, as the user of the machine that `id` names; the `system` by itself. An
    `anonymous` one has not proved to be anybody.
    """

    type: ActorType
    id: Annotated[str, Field(examples=["usr_01KZ0000000000000000AGENT1"])] | None
    name: Annotated[str, Field(examples=["grace@example.org"])] | None


class AuditObject(Shape):
    """What it was done to. The `id` is null for an account that does not exist, and `erased_…` for an erased contact."""

    type: ObjectType
    id: Annotated[str, Field(examples=["key_01KZ00000000000000000000K1"])] | None
    name: Annotated[str, Field(examples=["CRM"])] | None


class AuditChange(Shape):
    """A field before and after, null for nothing."""

    before: Any
    after: Any


class AuditRecord(Shape):
    """What was done, by whom, to what, when and from where.

    Repetitions within a quarter of an hour may share a record: it has the `requestId` of the first, their `count`, and
    in `details` their numbers added up.
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
