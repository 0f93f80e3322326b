"""Redaction: what is taken out of one message, decided on the message as it is stored, and what events show of it then.

A hidden character becomes an asterisk, so that the places of the others stay: ranges mean the same before and after, and what
is repeated changes nothing. The length of what was hidden can be seen; that of a whole text that was redacted can't.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import orjson

from deskwire.engine.conversations.commands import DeleteMessage, RedactMessage
from deskwire.engine.conversations.conversation import Message
from deskwire.engine.core.clock import iso_or_none
from deskwire.engine.core.errors import Invalid, NotFound, Problem
from deskwire.engine.core.values import replace
from deskwire.engine.uploads.upload import Attachment

HIDDEN: Final = "*"
"""A character of a text in the place of one that was redacted."""

PREVIEW_LENGTH_MAX: Final = 160
"""Characters of the newest message that the agents' view shows."""

MessageChange: TypeAlias = tuple[Message, Message]
"""A message as it was, and as it is."""


def redacted_message(command: RedactMessage, at: int) -> MessageChange:
    """Return the message before and after its redaction at this time (ms), equal if there was nothing left to redact.

    Raises NotFound, or Invalid with each range and each attachment that the message does not have.
    """
    message = _found(command.found, command.message_id)
    problems = unfit(message, command.ranges, command.attachments)
    if problems:
        raise Invalid(*problems)
    after = replace(message, text=_text(message, command), attachments=_attachments(message, command))
    return message, message if after == message else replace(after, redacted_at=at)


def erased_message(command: DeleteMessage, at: int) -> MessageChange:
    """Return the message before and after its deletion at this time (ms): nothing but its place and its author. Raises NotFound."""
    message = _found(command.found, command.message_id)
    return message, replace(message, text="", attachments=(), redacted_at=at, deleted=True)


def _found(message: Message | None, message_id: str) -> Message:
    if message is None:
        raise NotFound(f"This conversation has no message {message_id!r}.", code="message_not_found")
    return message


def _text(message: Message, command: RedactMessage) -> str:
    if command.text:
        return ""
    characters = [*message.text]
    for start, end in command.ranges:
        characters[start:end] = HIDDEN * (end - start)
    return "".join(characters)


def _attachments(message: Message, command: RedactMessage) -> tuple[Attachment, ...]:
    if command.all_attachments:
        return ()
    return tuple(each for each in message.attachments if each.id not in command.attachments)


def unfit(message: Message, ranges: Sequence[tuple[int, int]], attachments: Sequence[str]) -> list[Problem]:
    """Return what of a redaction the message does not have.

    An attachment that it lacks is no problem once something of it was redacted: that may have been among it.
    """
    length, problems = len(message.text), list[Problem]()
    for place, (_, end) in enumerate(ranges):
        if end > length:
            problems.append(
                Problem(f"/ranges/{place}/end", "too_large", f"The text has {length} characters.")
            )
    known = {each.id for each in message.attachments}
    for place, upload_id in enumerate(attachments if message.redacted_at is None else ()):
        if upload_id not in known:
            said = f"The message has no attachment {upload_id!r}."
            problems.append(Problem(f"/attachments/{place}", "unknown", said))
    return problems


def rewritten(body: bytes, message: Message) -> bytes:
    """Return an envelope that shows a message, in full or its first words, as it shows it now; others stay as they are."""
    envelope = orjson.loads(body)
    data = envelope["data"]
    shown, conversation = data.get("message"), data.get("conversation")
    last = None if conversation is None else conversation.get("lastMessage")
    if shown is not None and shown["id"] == message.id:
        kept = {each.id for each in message.attachments}
        shown["text"] = message.text
        shown["attachments"] = [each for each in shown["attachments"] if each["id"] in kept]
        shown["redactedAt"] = iso_or_none(message.redacted_at)
    if last is not None and last["id"] == message.id:
        last["text"] = message.text[:PREVIEW_LENGTH_MAX]
    return bytes(memoryview(orjson.dumps(envelope)))
