"""Voice replies: drafts from recordings, by one model call (contract 4.2).

The recording is checked before it is sent to the model.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import structlog
import trio
from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.conversation import Message
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import BadGateway, Invalid, NotFound, Problem, Unavailable
from deskwire.engine.core.store import InlineQuery, Store
from deskwire.engine.core.text import MESSAGE_TEXT_MAX
from deskwire.engine.llm.chat import ChatModel, ModelError
from deskwire.engine.tickets.change import find_ticket
from deskwire.engine.tickets.ports import TicketReader
from deskwire.engine.tickets.ticket import Ticket
from deskwire.engine.uploads.audio import mpeg_seconds, wave_seconds
from deskwire.engine.uploads.ports import UploadReader
from deskwire.engine.uploads.service import UploadService
from deskwire.engine.uploads.upload import Upload
from deskwire.engine.voice.prompts import MESSAGES_MAX, Mode, prompt_messages, response_schema

log: Final = structlog.get_logger(__name__)

# Media types and their names in OpenAI's `input_audio`, which accepts only these two.
AUDIO_FORMATS: Final[Mapping[str, str]] = {"audio/wav": "wav", "audio/mpeg": "mp3"}

AUDIO_FIELD: Final = "/audioUrl"

_NEWEST: Final = (1 << 63) - 1


class VoiceReply(Struct, frozen=True):
    """The model's reply for a recording. In `dictate`, both texts are the same."""

    reply: str
    transcript: str
    mode: Mode


# The ticket, if there is one, and the newest messages of its conversation (`smart` only).
_Context = tuple[Ticket | None, Sequence[Message]]


class VoiceReader(TicketReader, ConversationReader, UploadReader, Protocol):
    """Queries on a ticket, its conversation, and the recording."""


class Voice:
    """Makes voice replies.

    Args:
        model: None if no model is configured.
        audio_bytes: maximum size of a recording.
        audio_s: maximum duration of a recording in seconds.
        concurrency: maximum number of concurrent replies. Each holds its recording in memory about three
            times.
    """

    def __init__(
        self,
        store: Store[VoiceReader, object],
        uploads: UploadService,
        clock: Clock,
        model: ChatModel | None,
        *,
        audio_bytes: int,
        audio_s: float,
        concurrency: int,
    ) -> None:
        self._store = store
        self._uploads = uploads
        self._clock = clock
        self._model = model
        self._audio_bytes = audio_bytes
        self._audio_s = audio_s
        self._concurrency = concurrency
        self._under_way = 0

    async def reply_to_ticket(
        self, project: Project, ticket_id: str, audio_url: str, mode: Mode
    ) -> VoiceReply:
        """Return a recording's transcript, and in `smart` a draft reply to the ticket.

        Raises as `_reply`.
        """
        return await self._reply(
            project, lambda reader: _ticket(reader, project, ticket_id, mode), audio_url, mode
        )

    async def reply_in_conversation(
        self, project: Project, conversation_id: str, audio_url: str, mode: Mode
    ) -> VoiceReply:
        """Return a recording's transcript and, in `smart` mode, a draft message.

        Raises as `_reply`.
        """
        return await self._reply(
            project, lambda reader: (None, _newest(reader, project, conversation_id, mode)), audio_url, mode
        )

    async def _reply(
        self, project: Project, context: Callable[[VoiceReader], _Context], audio_url: str, mode: Mode
    ) -> VoiceReply:
        """Return the reply made by the model.

        Raises:
            NotFound: the ticket or conversation does not exist.
            Invalid: the URL was not signed for an upload of this project, or the upload is not a valid
                recording.
            Unavailable: no model is configured (`model_not_configured`), or too many replies are running.
            BadGateway: the model failed (`model_failed`) after one call.
        """
        ticket, messages = await self._store.read(context)
        upload = await self.upload(project, audio_url)
        form = audio_format(upload, self._audio_bytes)
        if self._model is None:
            raise Unavailable("No language model is configured here.", code="model_not_configured")
        if self._under_way >= self._concurrency:
            raise Unavailable("Too many voice replies are under way.", code="voice_busy")
        self._under_way += 1
        try:
            content = await self._uploads.read(upload, 0, upload.size)
            audio = await trio.to_thread.run_sync(_checked, content, form, self._audio_s)
            return await _ask(self._model, mode, prompt_messages(mode, audio, form, ticket, messages))
        finally:
            self._under_way -= 1

    async def upload(self, project: Project, url: str) -> Upload:
        """Return the upload of a signed URL.

        Raises Invalid if this service has not signed the URL.
        """
        upload_id = self._uploads.links.upload_id(url, self._clock())
        upload = None
        if upload_id is not None:
            upload = await self._store.read(
                InlineQuery(lambda reader: reader.upload(project.rowid, upload_id))
            )
        if upload is None:
            message = "This is not a valid URL that this service has signed for an upload of this project."
            raise Invalid(Problem(AUDIO_FIELD, "url_not_signed", message))
        return upload


def _ticket(reader: VoiceReader, project: Project, ticket_id: str, mode: Mode) -> _Context:
    """Return the ticket, and in `smart` its conversation's newest messages.

    Raises NotFound.
    """
    ticket = find_ticket(reader, project, ticket_id)
    if mode == "dictate" or ticket.conversation_id is None:
        return ticket, ()
    try:
        return ticket, _newest(reader, project, ticket.conversation_id, mode)
    except NotFound:
        return ticket, ()


def _newest(reader: VoiceReader, project: Project, conversation_id: str, mode: Mode) -> Sequence[Message]:
    """Return the newest messages of a conversation; none in `dictate`.

    Raises NotFound.
    """
    conversation = reader.conversation(project.rowid, conversation_id)
    if conversation is None:
        raise NotFound("There is no such conversation.", code="conversation_not_found")
    if mode == "dictate":
        return ()
    return reader.messages(conversation[0].rowid, internal=False, before=_NEWEST, limit=MESSAGES_MAX)


def _checked(content: bytes, form: str, limit_s: float) -> str:
    check_length(content, form, limit_s)
    return b64encode(content).decode()


async def _ask(model: ChatModel, mode: Mode, messages: list[dict[str, Any]]) -> VoiceReply:
    try:
        return _checked_reply(await model.complete(messages, response_schema(mode)), mode)
    except ModelError as error:
        log.warning("voice.model_failed", mode=mode, reason=str(error))
        raise BadGateway(f"The language model failed. {error}", code="model_failed") from error


def _checked_reply(response: Mapping[str, Any], mode: Mode) -> VoiceReply:
    """Return the checked reply. Raises ModelError if a requested field is missing.

    Additional fields are ignored.
    """
    match mode, response:
        case "dictate", {"transcript": str(transcript)}:
            reply = transcript
        case "smart", {"transcript": str(transcript), "reply": str(reply)}:
            if not reply.strip():
                raise ModelError("Its reply is empty.")
        case _:
            raise ModelError("Its answer lacks requested fields.")
    if max(len(reply), len(transcript)) > MESSAGE_TEXT_MAX:
        raise ModelError(f"Its answer is longer than {MESSAGE_TEXT_MAX:,} characters.")
    return VoiceReply(reply, transcript, mode)


def audio_format(upload: Upload, limit: int) -> str:
    """Return the recording's format for the API of the model.

    Raises Invalid for another media type, or for more than `limit` bytes.
    """
    form = AUDIO_FORMATS.get(upload.type)
    if form is None:
        types = " or ".join(AUDIO_FORMATS)
        raise Invalid(Problem(AUDIO_FIELD, "audio_format", f"The file is {upload.type}; it must be {types}."))
    if upload.size > limit:
        message = f"The recording has {upload.size:,} bytes; at most {limit:,} are taken."
        raise Invalid(Problem(AUDIO_FIELD, "audio_too_long", message))
    return form


def check_length(content: bytes, form: str, limit_s: float) -> None:
    """Check a recording's duration by its audio data, not by its header.

    Raises Invalid if it can't be read, or is longer than `limit_s` seconds.
    """
    seconds = wave_seconds(content) if form == "wav" else mpeg_seconds(content)
    if seconds is None:
        raise Invalid(Problem(AUDIO_FIELD, "audio_unreadable", "The file can't be read as a recording."))
    if seconds > limit_s:
        message = f"The recording lasts {seconds:,.0f} s; at most {limit_s:g} s are taken."
        raise Invalid(Problem(AUDIO_FIELD, "audio_too_long", message))
