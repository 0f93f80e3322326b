"""Voice replies to tickets and in conversations (contract 4.2; decisions 7)."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from deskwire.engine.voice.prompts import Mode
from deskwire.engine.voice.reply import VoiceReply as Draft
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import MEDIUM, Routes, Tag, dashboard
from deskwire.http.schemas.tickets import VoiceReply

routes = Routes(
    Tag("Voice replies", "Turn voice recordings into replies to tickets and in conversations."),
    unrecorded="It changes nothing.",
)
_MANAGE: Final = dashboard("tickets.manage", "conversations.read", "tickets.read")
_REPLY: Final = dashboard("conversations.reply", "conversations.read")
_ERRORS: Final = ("model_failed", "model_not_configured", "voice_busy")


class MakeVoiceReplyRequest(Body):
    """The recording, by the URL in the response to its upload, and the mode."""

    audio_url: Annotated[str, Field(min_length=1, max_length=4_096)]
    mode: Mode = "smart"


async def _check_url(call: Call[MakeVoiceReplyRequest, Query]) -> None:
    if call.body.audio_url is not None:
        await call.services.voice.upload(call.project, call.body.audio_url)


@routes.add(
    "POST",
    "/tickets/<ticket_id>/voice-reply",
    _MANAGE,
    operation_id="makeVoiceReply",
    body=MakeVoiceReplyRequest,
    limit=MEDIUM,
    answer=VoiceReply,
    errors=_ERRORS,
    further=(_check_url,),
)
async def make_voice_reply(call: Call[MakeVoiceReplyRequest, Query]) -> Answer:
    """Turn a recording into a text: `dictate` transcribes it, `smart` drafts a reply from its keywords.

    Nothing is sent to the customer, and nothing is stored. A draft is based on the recording, the ticket and the last
    messages of its conversation.
    """
    body = call.body
    draft = await call.services.voice.reply_to_ticket(
        call.project, call.path["ticket_id"], body.audio_url, body.mode
    )
    return _view(draft)


@routes.add(
    "POST",
    "/conversations/<conversation_id>/voice-reply",
    _REPLY,
    operation_id="makeVoiceReplyInConversation",
    body=MakeVoiceReplyRequest,
    limit=MEDIUM,
    answer=VoiceReply,
    errors=_ERRORS,
    further=(_check_url,),
)
async def make_voice_reply_in_conversation(call: Call[MakeVoiceReplyRequest, Query]) -> Answer:
    """Turn a recording into a text for a conversation: `dictate` transcribes it, `smart` drafts a reply from its keywords.

    Nothing is sent to the customer, and nothing is stored. A draft is based on the recording and the last messages of the
    conversation; notes are left out.
    """
    body = call.body
    draft = await call.services.voice.reply_in_conversation(
        call.project, call.path["conversation_id"], body.audio_url, body.mode
    )
    return _view(draft)


def _view(draft: Draft) -> Answer:
    return {"reply": draft.reply, "transcript": draft.transcript, "mode": draft.mode}
