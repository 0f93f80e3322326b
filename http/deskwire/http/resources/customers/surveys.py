"""The survey of a channel, for its customers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from deskwire.engine.contacts.blocks import require_not_blocked
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import IdempotencyMismatch, NotFound
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.customers.session import session_ended
from deskwire.engine.ports import Reader, Transaction
from deskwire.engine.surveys.definition import definition_of
from deskwire.engine.surveys.survey import Survey, SurveyResponse, SurveyVersion
from deskwire.engine.surveys.survey_lookup import find_survey, find_version
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import LARGE, Routes, customer
from deskwire.http.resources.customers.messages import (
    ClientId,
    contact_ids,
    read_durably,
    replayed,
    stored_contact,
)
from deskwire.http.resources.customers.sessions import CUSTOMERS
from deskwire.http.resources.surveys.responses import answered_version, check_answers, store_response
from deskwire.http.schemas import customer_conversations as shapes

routes = Routes(CUSTOMERS, customer(), unrecorded="It is content: it grants nothing, and is not a setting.")
_ONE = "/customer/surveys/<survey_id>"


class CreateMyResponseRequest(Body):
    """The answers, by question id. `clientId` names the response: a repeated call with it stores nothing more.

    `version` defaults to the published version, `language` to its primary language.
    """

    client_id: ClientId
    answers: dict[str, Any]
    version: Annotated[int, Field(ge=1, lt=1 << 31)] | None = None
    language: Annotated[str, Field(max_length=100)] | None = None


@routes.add("GET", _ONE, operation_id="showMySurvey", answer=shapes.CustomerSurvey)
async def show_survey(call: Call[Body, Query]) -> Answer:
    """Fetch the channel's survey with its published definition. Any other survey is not found."""
    _require_own(call)
    project, survey_id = call.project.rowid, call.path["survey_id"]

    def read(reader: Reader) -> tuple[Survey, SurveyVersion]:
        survey = find_survey(reader, project, survey_id)
        return survey, find_version(reader, survey, survey.version)

    survey, version = await call.services.store.read(InlineQuery(read))
    return {
        "id": survey.id,
        "status": survey.status,
        "version": version.number,
        "definition": dict(version.definition),
    }


async def _check(call: Call[CreateMyResponseRequest, Query]) -> None:
    _require_own(call)
    version = await call.services.store.read(answered_version(call))
    check_answers(call.body, definition_of(version.definition))


@routes.add(
    "POST",
    f"{_ONE}/responses",
    operation_id="createMyResponse",
    body=CreateMyResponseRequest,
    limit=LARGE,
    answer=shapes.CustomerSurveyResponse,
    errors=("contact_blocked", "idempotency_mismatch", "message_required", "rate_limited", "survey_closed"),
    further=(_check,),
)
async def create_response(call: Call[CreateMyResponseRequest, Query]) -> Answer:
    """Store the customer's answers to the channel's survey.

    The same `clientId` again answers with the stored response and `Idempotent-Replayed: true`. A visitor can answer after the
    first message.
    """
    _require_own(call)
    body, now = call.body, call.services.clock()
    contact, owners = stored_contact(call), await contact_ids(call)
    known = await read_durably(call, lambda reader: _known(reader, call, owners))
    if known is not None:
        return replayed(known)
    call.services.customer_limits.take_message(call.customer)
    version = await call.services.store.read(answered_version(call))
    definition = definition_of(version.definition)
    check_answers(body, definition)
    language = definition.primary_language if body.language is None else body.language
    response = SurveyResponse(
        0,
        new_id("rsp", now),
        version.number,
        contact.rowid,
        contact.user_id,
        language,
        body.answers,
        now,
        f"{contact.id}:{body.client_id}",
    )

    def store(tx: Transaction) -> tuple[dict[str, Any], bool]:
        stored = _known(tx, call, owners)
        if stored is not None:
            return stored, True
        present = tx.survivor(contact.rowid)
        if present is None:
            raise session_ended()  # the contact was merged or erased during the call
        require_not_blocked(present)
        view = store_response(tx, call.project, call.path["survey_id"], response)
        return _view(view["surveyId"], response), False

    shown, repeated = await call.services.store.write(store)
    return replayed(shown) if repeated else shown


def _known(
    reader: Reader, call: Call[CreateMyResponseRequest, Query], owners: frozenset[str]
) -> dict[str, Any] | None:
    """Return the response that is stored under this client id, if there is one.

    Raises IdempotencyMismatch if it has other answers.
    """
    survey = find_survey(reader, call.project.rowid, call.path["survey_id"])
    for owner in sorted(owners):
        found = reader.survey_response_by_client_key(survey.rowid, f"{owner}:{call.body.client_id}")
        if found is not None:
            if dict(found.answers) != call.body.answers:
                raise IdempotencyMismatch("This clientId was used before, for other answers.")
            return _view(survey.id, found)
    return None


def _view(survey_id: str, response: SurveyResponse) -> dict[str, Any]:
    return {
        "id": response.id,
        "surveyId": survey_id,
        "version": response.version,
        "createdAt": iso(response.created_at),
    }


def _require_own(call: Call[Any, Any]) -> None:
    """Raise NotFound for a survey that is not the channel's."""
    if call.path["survey_id"] != call.customer.channel.survey:
        raise NotFound("The channel has no such survey.", code="survey_not_found")
