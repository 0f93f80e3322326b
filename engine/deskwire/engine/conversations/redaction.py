"""The redaction and deletion of a message, decided on the stored message, and the change of its events.

A redacted character becomes an asterisk, which keeps the positions of the others: a range means the same before and after, and
a repeated redaction changes nothing. The length of a redacted part remains visible; the length of a whole redacted text
does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import orjson

from deskwire.engine.conversations.commands import DeleteMessage, RedactMessage
from deskwire.engine.conversations.conversation import Message
from deskwire.engine.conversations.mentions import left_mentions, mention_view
from deskwire.engine.core.clock import iso_or_none
from deskwire.engine.core.errors import Invalid, NotFound, Problem
from deskwire.engine.core.values import replace
from deskwire.engine.uploads.upload import Attachment

HIDDEN: Final = "*"
"""Replaces each redacted character of a text."""

PREVIEW_LENGTH_MAX: Final = 160
"""Maximum length, in characters, of the preview of the newest message in the agents' view."""

MessageChange: TypeAlias = tuple[Message, Message]
"""A message before and after a change."""


def redacted_message(command: RedactMessage, at: int) -> MessageChange:
    """Return the message before and after its redaction at this time (ms); both are equal if nothing is left to redact.

    Raises NotFound, and Invalid with each range and attachment that the message does not have.
    """
    message = _found(command.found, command.message_id)
    problems = unfit(message, command.ranges, command.attachments)
    if problems:
        raise Invalid(*problems)
    text = _text(message, command)
    mentions = left_mentions(message, text)
    # In Markdown, the asterisks of a redaction could be read as markup, and be invisible.
    text_format = message.format if text == message.text else None
    attachments = _attachments(message, command)
    after = replace(message, text=text, attachments=attachments, mentions=mentions, format=text_format)
    return message, message if after == message else replace(after, redacted_at=at)


def erased_message(command: DeleteMessage, at: int) -> MessageChange:
    """Return the message before and after its deletion at this time (ms); index and author stay. Raises NotFound."""
    message = _found(command.found, command.message_id)
    after = replace(message, text="", attachments=(), mentions=(), redacted_at=at, deleted=True, format=None)
    return message, after


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
    """Return a problem for each range and attachment that the message does not have.

    A missing attachment is accepted if the message was redacted earlier, because that redaction may have removed it.
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
            detail = f"The message has no attachment {upload_id!r}."
            problems.append(Problem(f"/attachments/{place}", "unknown", detail))
    return problems


def rewritten(body: bytes, message: Message) -> bytes:
    """Return an envelope with its copy of a message, full or preview, replaced by the present message."""
    envelope = orjson.loads(body)
    data = envelope["data"]
    shown, conversation = data.get("message"), data.get("conversation")
    last = None if conversation is None else conversation.get("lastMessage")
    if shown is not None and shown["id"] == message.id:
        kept = {each.id for each in message.attachments}
        shown["text"] = message.text
        shown["attachments"] = [each for each in shown["attachments"] if each["id"] in kept]
        shown["redactedAt"] = iso_or_none(message.redacted_at)
        if message.format is None:
            shown.pop("format", None)
        if "mentions" in shown:
            shown["mentions"] = [mention_view(each) for each in message.mentions]
    if last is not None and last["id"] == message.id:
        last["text"] = message.text[:PREVIEW_LENGTH_MAX]
    return bytes(memoryview(orjson.dumps(envelope)))
