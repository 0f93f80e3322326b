"""Events beyond the contract, for those who name their type: the data of each that no stream has, and all envelopes."""

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
from deskwire.http.schemas.webhooks import EndpointStatus, Waiting


class AnsweredSurvey(Shape):
    """The survey, and the version of it that was answered."""

    id: SurveyId
    version: VersionNumber


class ResponseData(Shape):
    """The response as it is stored, and the survey that it answers."""

    survey: AnsweredSurvey
    response: SurveyResponse


class RemovedSurvey(Shape):
    """The id of a survey."""

    id: SurveyId


class RemovedResponse(Shape):
    """The id of a response that is no more."""

    id: ResponseId


class RemovedResponseData(Shape):
    """The ids of a response that was deleted, and of its survey, without what it said."""

    survey: RemovedSurvey
    response: RemovedResponse


class RemovedSurveyData(Shape):
    """The id of the survey that was deleted with all its responses."""

    survey: RemovedSurvey


class ImportedPart(Shape):
    """A conversation in which a part of an import has stored something."""

    id: ConversationId
    sequence: Annotated[int, Field(ge=0, description="That of its newest event; the import causes none.")]
    messages: Annotated[int, Field(ge=0, description="The number of its messages after this part.")]
    imported: Annotated[int, Field(ge=0, description="How many of them this part has stored: the last ones.")]
    first_message_id: Annotated[
        MessageId | None, Field(description="The first message of this part; null if it has none.")
    ]


class ImportedData(Shape):
    """The conversations of a part of an import, of 500 lines at most."""

    conversations: list[ImportedPart]


class EndpointHealth(Shape):
    """Another endpoint of the project, as it is after the change."""

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
        Waiting | None, Field(description="The deliveries that wait until the circuit is closed.")
    ]


class EndpointData(Shape):
    """The endpoint that the event is about. It is never sent the event itself."""

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
"""The model of `data` for each type beyond the contract; a test fails for a type that is missing."""

ENVELOPES: Final[Mapping[str, type[Shape]]] = {
    kind.type: envelope(kind, DATA[kind.type]) for kind in EXTENSIONS.values() if kind.type in DATA
}
"""The envelope of each of these types."""

_FED: Final = {**EVENTS, **ENVELOPES}


class AnyEvent(RootModel[Any]):
    """An event as it is stored: one of the contract's types, or of those beyond it that were named."""

    model_config = ConfigDict(defer_build=True)  # as shapes, it is of no use to the service

    root: Annotated[
        Union[tuple(_FED[each] for each in sorted((STORED | NAMEABLE) & _FED.keys()))],  # type: ignore[valid-type]  # noqa: UP007
        Field(discriminator="type"),
    ]
