"""Messages of agents: conditional replies, follow-up changes, held messages, and an agent's changes to a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final

from pydantic import Field

from deskwire.engine.conversations.commands import (
    Assign,
    Close,
    Patch,
    PostMessage,
    Reply,
)
from deskwire.engine.conversations.conversation import Author, Mention, Status
from deskwire.engine.conversations.decide import MovedOn
from deskwire.engine.conversations.drafts import DraftSent
from deskwire.engine.conversations.held_messages import (
    HOLD_MAX_S,
    SCHEDULE_MAX_S,
    HeldMessage,
    held_view,
    hold_message,
)
from deskwire.engine.conversations.mentions import MENTIONS_MAX, find_mentions
from deskwire.engine.conversations.tags import TAGS_MAX, normal_tags
from deskwire.engine.core.clock import milliseconds
from deskwire.engine.core.errors import Invalid, Problem
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineJob, InlineQuery
from deskwire.engine.ports import Transaction
from deskwire.engine.uploads.upload import Attachment
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, given_fields
from deskwire.http.resources.conversations import inbox, operations
from deskwire.http.resources.conversations.requests import (
    AssigneeInput,
    ChangeConversationRequest,
    FormattedMessageInput,
    IfSequence,
)
from deskwire.http.resources.fields import Tag, Time

SNOOZE_MAX_S: Final = 366 * 86_400

NULLABLE: Final = operations.NULLABLE | {"snoozed_until"}
"""Fields of an agent's patch that null clears."""

_MANAGE: Final = "conversations.manage"

FOR_CUSTOMER: Final[Mapping[str, Any]] = {"internal": False, "mentions": []}
"""The fields of the agents' object of a message that its public object lacks."""


class DashboardChangeConversationRequest(ChangeConversationRequest):
    """The fields to change. `attributes` are merged, and a null in them removes a key.

    `tags` replaces all tags, which are compared and shown in lower case. `snoozedUntil` is a time within a year. Only
    `title` and `snoozedUntil` can be set to null.
    """

    tags: Annotated[list[Tag], Field(max_length=TAGS_MAX)] | None = None
    snoozed_until: Time | None = None


class FollowUpInput(Body):
    """The changes to apply after the message in the same commit. The status `CLOSED` closes the conversation, like `close`. A null
    assignee unassigns, a null `snoozedUntil` ends a snooze.
    """

    status: Status | None = None
    close: bool | None = None
    assignee: AssigneeInput | None = None
    snoozed_until: Time | None = None


class DashboardPostMessageRequest(FormattedMessageInput):
    """The message of the signed-in agent, or with `internal` a note that only agents see.

    With `ifSequence`, the newest sequence of the conversation that you know, the message is refused if a message was added or the
    conversation was closed after it.

    With `holdSeconds` it is stored and returned as a held message, and sent after these seconds unless you take it back;
    `ifSequence` and `then` apply at that time. `draftVersion` is the version of your draft that the text was made from: that
    draft is removed in the same commit, while a newer one stays.

    With `sendAt`, a time within a year, it is scheduled: it is stored as a held message, and sent then. `ifSequence` is checked at
    once. At its time a close in the meantime refuses it, and with `unlessReplied` also a message of the contact.

    `mentions` has the ids of the users and teams whom a note mentions; the text usually has `@` and their names. They must be able
    to read conversations. They follow the conversation from then on, and so do you.
    """

    internal: bool = False
    mentions: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=40)]],
        Field(max_length=MENTIONS_MAX, default_factory=list),
    ]
    if_sequence: IfSequence | None = None
    then: FollowUpInput | None = None
    hold_seconds: Annotated[int, Field(ge=1, le=HOLD_MAX_S)] | None = None
    send_at: Time | None = None
    unless_replied: bool = False
    draft_version: Annotated[int, Field(ge=1, lt=1 << 53)] | None = None


def ahead(time: str | None, now: int, pointer: str) -> int | None:
    """Return the end of a snooze in milliseconds. Raises Invalid if it is in the past, or too far in the future."""
    if time is None:
        return None
    until = milliseconds(time)
    if until <= now:
        message = "The end of a snooze must be in the future."
        raise Invalid(Problem(pointer, "not_ahead", message))
    if until > now + SNOOZE_MAX_S * 1000:
        raise Invalid(Problem(pointer, "too_large", "A conversation can be snoozed for at most a year."))
    return until


def waited_since(time: str | None, now: int) -> int | None:
    """Return the start of a contact's wait in milliseconds. Raises Invalid if it is in the future."""
    if time is None:
        return None
    since = milliseconds(time)
    if since > now:
        message = "The start of a contact's wait must be in the past."
        raise Invalid(Problem("/waitingSince", "in_the_future", message))
    return since


def patch_of(call: Call[DashboardChangeConversationRequest, Any]) -> Patch:
    """Return the command of an agent's PATCH. Raises Invalid like `operations.patch_of`, and for a snooze that has ended."""
    given = given_fields(call.body, NULLABLE)
    if given.get("tags") is not None:
        given["tags"] = normal_tags(given["tags"])
    if "snoozed_until" in given:
        given["snoozed_until"] = ahead(given["snoozed_until"], call.services.clock(), "/snoozedUntil")
    return Patch(given)


async def check_snooze(call: Call[Any, Any]) -> None:
    """Check the end of a snooze in a patch."""
    ahead(call.body.snoozed_until, call.services.clock(), "/snoozedUntil")


async def post_message(call: Call[DashboardPostMessageRequest, Any]) -> Answer:
    """Add the agent's message with its follow-up changes; see `Reply`. Raises MovedOn with newer messages."""
    body = call.body
    then = await _then(call)
    attachments, problems = await operations.attached(call, body.attachments, "")
    if problems:
        raise Invalid(*problems)
    mentions = await _mentions(call)
    send_at = await _send_at(call)
    if send_at is not None:
        try:
            return await _hold(call, attachments, mentions, send_at)
        except MovedOn:
            raise MovedOn(await inbox.since(call, body.if_sequence or 0)) from None
    author = Author("agent", call.user.id, call.user.name)
    message_id = new_id("msg", call.services.clock())
    message = PostMessage(
        message_id, author, body.text, body.internal, attachments, format=body.format, mentions=mentions
    )
    plain = body.if_sequence is None and not then
    command = message if plain else Reply(message, body.if_sequence, then)
    try:
        return await operations.post(
            call,
            command,
            lambda message: {**message, **({} if body.internal else FOR_CUSTOMER)},
            operations.actor_of(call),
            _draft_sent(call),
        )
    except MovedOn:
        raise MovedOn(await inbox.since(call, body.if_sequence or 0)) from None


def _draft_sent(call: Call[DashboardPostMessageRequest, Any]) -> DraftSent | None:
    """Return the removal of the draft that the message was made from, if it names one."""
    version = call.body.draft_version
    return None if version is None else DraftSent(call.user.rowid, version, internal=call.body.internal)


async def _mentions(call: Call[DashboardPostMessageRequest, Any]) -> tuple[Mention, ...]:
    """Return the mentions of a note. Raises Invalid with each one that is unknown or can't read conversations."""
    ids = call.body.mentions
    if not ids:
        return ()
    if not call.body.internal:
        message = (
            "Only notes mention: the customer would see the message. Set `internal`, or leave `mentions` out."
        )
        raise Invalid(Problem("/mentions", "not_allowed", message))
    found = await call.services.store.read(
        InlineQuery(lambda reader: find_mentions(reader, call.project, ids))
    )
    return found.mentions


async def _send_at(call: Call[DashboardPostMessageRequest, Any]) -> int | None:
    """Return when the message is to be sent (ms), None for now. Raises Invalid for a time that can't be chosen."""
    body, now = call.body, call.services.clock()
    if body.send_at is None:
        if body.unless_replied:
            message = "Only scheduled messages have this condition: give `sendAt`, too."
            raise Invalid(Problem("/unlessReplied", "not_allowed", message))
        return None if body.hold_seconds is None else now + body.hold_seconds * 1000
    if body.hold_seconds is not None:
        raise Invalid(Problem("/sendAt", "not_allowed", "Give either `sendAt` or `holdSeconds`."))
    at = milliseconds(body.send_at)
    if at <= now:
        raise Invalid(Problem("/sendAt", "not_ahead", "The time to send a message must be in the future."))
    if at > now + SCHEDULE_MAX_S * 1000:
        message = "A message can be scheduled for at most a year."
        raise Invalid(Problem("/sendAt", "too_large", message))
    return at


async def _hold(
    call: Call[DashboardPostMessageRequest, Any],
    attachments: tuple[Attachment, ...],
    mentions: tuple[Mention, ...],
    send_at: int,
) -> Answer:
    """Store the message to be sent later. Return the held message."""
    body, user, now = call.body, call.user, call.services.clock()
    identifier = operations.conversation_id(call)
    message = HeldMessage(
        new_id("msg", now),
        call.project.rowid,
        0,
        identifier,
        user.rowid,
        user.id,
        user.name,
        body.internal,
        body.text,
        attachments,
        body.if_sequence,
        None if body.then is None else body.then.model_dump(by_alias=True, exclude_unset=True),
        send_at,
        now,
        format=body.format,
        mentions=mentions,
        scheduled=body.send_at is not None,
        unless_replied=body.unless_replied,
    )
    show = partial(call.services.uploads.links.shown, now=now)

    def job(tx: Transaction) -> HeldMessage:
        return hold_message(tx, call.project, message, body.draft_version)

    def view(held: HeldMessage) -> Mapping[str, Any]:
        return held_view(held, show)

    return view(await call.services.store.write(InlineJob(call.around(job, view, identifier))))


async def check_reply(call: Call[DashboardPostMessageRequest, Any]) -> None:
    """Check the attachments and mentions of a message, and its follow-up changes."""
    found = [*(await operations.attached(call, call.body.attachments, ""))[1]]
    for check in (_mentions, _then, _send_at):
        try:
            await check(call)
        except Invalid as refused:  # fields that failed their model have no value to check
            found += [each for each in refused.problems if each.code != "required"]
    if found:
        raise Invalid(*found)


async def _then(call: Call[DashboardPostMessageRequest, Any]) -> tuple[Assign | Patch | Close, ...]:
    """Return the commands that follow a message, in order. Raises Forbidden, or Invalid."""
    then = call.body.then
    if then is None:
        return ()
    call.access.require(_MANAGE)
    given = given_fields(then, frozenset({"assignee", "snoozed_until"}), "/then")
    closes = given.get("close") or given.get("status") == "CLOSED"
    if closes and ("snoozed_until" in given or given.get("status", "CLOSED") != "CLOSED"):
        message = "A closed conversation can have neither another status nor a snooze."
        raise Invalid(
            Problem("/then/close" if given.get("close") else "/then/status", "not_allowed", message)
        )
    following: list[Assign | Patch | Close] = []
    if "assignee" in given:
        following.append(Assign(await operations.assignee_of(call, then.assignee, "/then/assignee")))
    changed = ("snoozed_until",) if closes else ("status", "snoozed_until")
    changes: dict[str, Any] = {name: given[name] for name in changed if name in given}
    if "snoozed_until" in changes:
        changes["snoozed_until"] = ahead(then.snoozed_until, call.services.clock(), "/then/snoozedUntil")
    if changes:
        following.append(Patch(changes))
    if closes:
        following.append(Close("agent"))
    return tuple(following)
