"""A voice reply: one recording, one call of the model, one checked response (contract 4.2; decisions 7)."""

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
from deskwire.engine.core.store import Inline, Store
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

REPLY_MAX: Final = 20_000
"""Characters, as of a message."""

_NEWEST: Final = (1 << 63) - 1


class VoiceReply(Struct, frozen=True):
    """The reply that the model has made of a recording; in `dictate` both texts are the same."""

    reply: str
    transcript: str
    mode: Mode


_Context = tuple[Ticket | None, Sequence[Message]]
"""The ticket, if it is about one, and to draft a reply the newest messages of its conversation."""


class VoiceReader(TicketReader, ConversationReader, UploadReader, Protocol):
    """Queries on a ticket, its conversation, and the recording."""


class Voice:
    """The maker of voice replies.

    Args:
        model: None if none is configured.
        audio_bytes: largest recording that is taken.
        audio_s: longest one, in seconds.
        concurrency: replies under way together at most; each holds its recording in memory, about three times.
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
        """Return what a recording says, and in `smart` the reply to a ticket drafted from it. Raises as `_reply`."""
        return await self._reply(
            project, lambda reader: _ticket(reader, project, ticket_id, mode), audio_url, mode
        )

    async def reply_in_conversation(
        self, project: Project, conversation_id: str, audio_url: str, mode: Mode
    ) -> VoiceReply:
        """Return what a recording says, and in `smart` the reply in a conversation drafted from it. Raises as `_reply`."""
        return await self._reply(
            project, lambda reader: (None, _newest(reader, project, conversation_id, mode)), audio_url, mode
        )

    async def _reply(
        self, project: Project, context: Callable[[VoiceReader], _Context], audio_url: str, mode: Mode
    ) -> VoiceReply:
        """Return the reply that the model makes.

        Raises:
            NotFound: there is no such ticket or conversation.
            Invalid: the URL was not signed for an upload of this project, or that is no recording that the model takes.
            Unavailable: no model is configured (`model_not_configured`), or too many replies are under way.
            BadGateway: the model failed (`model_failed`). It was called once.
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
        """Return the upload that a URL leads to. Raises Invalid if this service has not signed the URL."""
        upload_id = self._uploads.links.upload_id(url, self._clock())
        upload = None
        if upload_id is not None:
            upload = await self._store.read(Inline(lambda reader: reader.upload(project.rowid, upload_id)))
        if upload is None:
            message = "This is not a valid URL that this service has signed for an upload of this project."
            raise Invalid(Problem(AUDIO_FIELD, "url_not_signed", message))
        return upload


def _ticket(reader: VoiceReader, project: Project, ticket_id: str, mode: Mode) -> _Context:
    """Return the ticket, and to draft a reply the newest messages of its conversation. Raises NotFound."""
    ticket = find_ticket(reader, project, ticket_id)
    if mode == "dictate" or ticket.conversation_id is None:
        return ticket, ()
    try:
        return ticket, _newest(reader, project, ticket.conversation_id, mode)
    except NotFound:
        return ticket, ()


def _newest(reader: VoiceReader, project: Project, conversation_id: str, mode: Mode) -> Sequence[Message]:
    """Return the newest messages of a conversation, none of them to dictate. Raises NotFound."""
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
    """Return the checked reply. Raises ModelError if the response lacks what was asked for; what it has besides is left."""
    match mode, response:
        case "dictate", {"transcript": str(transcript)}:
            reply = transcript
        case "smart", {"transcript": str(transcript), "reply": str(reply)}:
            if not reply.strip():
                raise ModelError("Its reply is empty.")
        case _:
            raise ModelError("Its answer has not the fields that were asked for.")
    if max(len(reply), len(transcript)) > REPLY_MAX:
        raise ModelError(f"Its answer is longer than {REPLY_MAX:,} characters.")
    return VoiceReply(reply, transcript, mode)


AUDIO_FORMATS: Final[Mapping[str, str]] = {"audio/wav": "wav", "audio/mpeg": "mp3"}
"""Media types, with their names on the wire: OpenAI's `input_audio` takes these two."""

AUDIO_FIELD: Final = "/audioUrl"


def audio_format(upload: Upload, limit: int) -> str:
    """Return the format's name on the wire. Raises Invalid for another type, or more than `limit` bytes."""
    form = AUDIO_FORMATS.get(upload.type)
    if form is None:
        types = " or ".join(AUDIO_FORMATS)
        raise Invalid(Problem(AUDIO_FIELD, "audio_format", f"The file is {upload.type}; it must be {types}."))
    if upload.size > limit:
        message = f"The recording has {upload.size:,} bytes; at most {limit:,} are taken."
        raise Invalid(Problem(AUDIO_FIELD, "audio_too_long", message))
    return form


def check_length(content: bytes, form: str, limit_s: float) -> None:
    """Check a recording by the sound that it holds, whatever its header says.

    Raises Invalid if it can't be read, or lasts longer than `limit_s` seconds.
    """
    seconds = wave_seconds(content) if form == "wav" else mpeg_seconds(content)
    if seconds is None:
        raise Invalid(Problem(AUDIO_FIELD, "audio_unreadable", "The file can't be read as a recording."))
    if seconds > limit_s:
        message = f"The recording lasts {seconds:,.0f} s; at most {limit_s:g} s are taken."
        raise Invalid(Problem(AUDIO_FIELD, "audio_too_long", message))
