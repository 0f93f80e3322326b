"""Events beyond the contract: the data of types that no stream has, and all envelopes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Union

from pydantic import ConfigDict, Field, RootModel

from deskwire.engine.events.types import EXTENSIONS, NAMEABLE, STORED
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitStatus
from deskwire.http.schemas.agent_events import DATA as AGENT_DATA
from deskwire.http.schemas.base import (
    ConversationId,
    EndpointId,
    MessageId,
    Moment,
    ResponseId,
    Shape,
    SurveyId,
    Url,
)
from deskwire.http.schemas.events import ENVELOPES as EVENTS
from deskwire.http.schemas.events import envelope
from deskwire.http.schemas.surveys import SurveyResponse, VersionNumber
from deskwire.http.schemas.webhooks import EndpointStatus, WaitingDeliveries


class AnsweredSurvey(Shape):
    """The survey, and the answered version."""

    id: SurveyId
    version: VersionNumber


class ResponseData(Shape):
    """The response as stored, and its survey."""

    survey: AnsweredSurvey
    response: SurveyResponse


class RemovedSurvey(Shape):
    """The id of a survey."""

    id: SurveyId


class RemovedResponse(Shape):
    """The id of a deleted response."""

    id: ResponseId


class RemovedResponseData(Shape):
    """The ids of a deleted response and its survey, without the answers."""

    survey: RemovedSurvey
    response: RemovedResponse


class RemovedSurveyData(Shape):
    """The id of a survey that was deleted with all its responses."""

    survey: RemovedSurvey


class ImportedPart(Shape):
    """A conversation changed by a part of an import."""

    id: ConversationId
    sequence: Annotated[
        int, Field(ge=0, description="The sequence of its newest event; the import causes none.")
    ]
    messages: Annotated[int, Field(ge=0, description="The number of its messages after this part.")]
    imported: Annotated[
        int,
        Field(ge=0, description="The number of messages that this part has stored, which are the last ones."),
    ]
    first_message_id: Annotated[
        MessageId | None, Field(description="The first message of this part, if any.")
    ]


class ImportedData(Shape):
    """The conversations of a part of an import of up to 500 lines."""

    conversations: list[ImportedPart]


class EndpointHealth(Shape):
    """Another endpoint of the project, after the change."""

    id: EndpointId
    url: Url
    description: Annotated[str, Field(examples=["The CRM"])] | None
    status: EndpointStatus
    status_reason: Annotated[str, Field(examples=["by the API"])] | None
    circuit: CircuitStatus
    circuit_reason: (
        Annotated[str, Field(examples=["20 attempts in a row failed within 61 s; the last: status 500"])]
        | None
    )
    circuit_open_until: Moment | None
    failing_since: Moment | None
    held: Annotated[
        WaitingDeliveries | None, Field(description="The deliveries held until the circuit closes.")
    ]


class EndpointData(Shape):
    """The endpoint of the event, which never receives the event itself."""

    endpoint: EndpointHealth


DATA: Final[Mapping[str, type[Shape]]] = {
    **{name: data for name, data in AGENT_DATA.items() if name in EXTENSIONS},
    "survey.response.created": ResponseData,
    "survey.response.deleted": RemovedResponseData,
    "survey.deleted": RemovedSurveyData,
    "conversations.imported": ImportedData,
    "webhook.circuit.opened": EndpointData,
    "webhook.circuit.closed": EndpointData,
    "webhook.disabled": EndpointData,
    "webhook.enabled": EndpointData,
}
"""The model of `data` for each type beyond the contract; a test fails for a missing type."""

ENVELOPES: Final[Mapping[str, type[Shape]]] = {
    kind.type: envelope(kind, DATA[kind.type]) for kind in EXTENSIONS.values() if kind.type in DATA
}
"""The envelope of each of these types."""

_FED: Final = {**EVENTS, **ENVELOPES}


class AnyEvent(RootModel[Any]):
    """An event as stored: of the contract's types, or of a listed type beyond them."""

    model_config = ConfigDict(defer_build=True)  # the service does not use it, like shapes

    root: Annotated[
        Union[tuple(_FED[each] for each in sorted((STORED | NAMEABLE) & _FED.keys()))],  # type: ignore[valid-type]  # noqa: UP007
        Field(discriminator="type"),
    ]
