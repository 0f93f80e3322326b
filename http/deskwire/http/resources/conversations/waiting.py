"""The mark that a conversation's contact needs no answer, and its removal."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from deskwire.engine.conversations.commands import MarkNoAnswerNeeded, WaitAgain
from deskwire.engine.core.clock import iso_or_none
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import Routes, dashboard
from deskwire.http.resources.conversations.dashboard import FOR_AGENTS
from deskwire.http.resources.conversations.operations import ask
from deskwire.http.schemas import inbox as shapes

routes = Routes(
    FOR_AGENTS,
    dashboard("conversations.reply"),
    unrecorded="The conversation's activity names the agent, and agents' events show the change.",
)
_MARK = "/conversations/<conversation_id>/no-answer-needed"


class MarkNoAnswerNeededRequest(Body):
    """The index of the newest message that you have seen; -1 if the conversation has none of its own, as after a split."""

    index: Annotated[int, Field(ge=-1, lt=1 << 31)]


@routes.add(
    "PUT",
    _MARK,
    operation_id="markNoAnswerNeeded",
    body=MarkNoAnswerNeededRequest,
    answer=shapes.Waiting,
    errors=("conversation_closed", "conversation_merged", "newer_message"),
)
async def mark_no_answer_needed(call: Call[MarkNoAnswerNeededRequest, Query]) -> Answer:
    """Mark that the contact needs no answer: the contact does not wait until the next message of the contact.

    It is no reply, also in reports, and the customer does not see it. It changes nothing if the contact does not wait.
    """
    return await _change(call, MarkNoAnswerNeeded(call.body.index))


@routes.add(
    "DELETE",
    _MARK,
    operation_id="waitAgain",
    answer=shapes.Waiting,
    errors=("conversation_closed", "conversation_merged"),
)
async def wait_again(call: Call[Body, Query]) -> Answer:
    """Take back the mark that the contact needs no answer: the contact waits again, since the same time as before.

    It changes nothing without the mark, which the next message of the contact, an agent or a bot ends.
    """
    return await _change(call, WaitAgain())


async def _change(call: Call[Any, Query], command: MarkNoAnswerNeeded | WaitAgain) -> Answer:
    state = (await ask(call, command)).after
    return {
        "waitingSince": iso_or_none(state.waiting_since),
        "noAnswerNeededSince": iso_or_none(state.no_answer_needed_since),
    }
