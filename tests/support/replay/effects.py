"""The check that every acknowledged command shows up on every channel, in order, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, assert_never

from msgspec import Struct

from deskwire.commands.demo.chats import ChatStep
from tests.support.replay.history import Command, Effect, History
from tests.support.replay.timeline import Seen, Timeline

_MISSING = object()


class Match(Struct, frozen=True):
    """An effect of a command with the event that shows it; None if no event does."""

    command: Command
    effect: Effect
    seen: Seen | None


def matches(history: History, channel: Timeline) -> Iterator[Match]:
    """Yield every effect that must be on a channel, with its event there.

    The effects of a conversation are looked for in the order of its commands, each after the previous one.
    """
    numbered = channel.by_conversation()
    behind: dict[str, int] = {}
    for command in history.commands:
        for effect in command.effects:
            conversation = command.conversation or ""
            events = numbered.get(conversation, {})
            start = behind.get(conversation, 0)
            sequence = next((n for n in sorted(events) if n > start and shows(events[n], effect)), None)
            if sequence is not None:
                behind[conversation] = sequence
            yield Match(command, effect, None if sequence is None else events[sequence])


def unanswered(history: History, channels: Mapping[str, Timeline]) -> Iterator[str]:
    """Yield the effects that a channel does not show, and the events without a command."""
    for name, channel in channels.items():
        asked_for = set[str]()
        for match in matches(history, channel):
            if match.seen is None:
                what = f"{match.command.kind} in {match.command.conversation}"
                yield f"{name}: no {match.effect.type} shows the {what}"
            else:
                asked_for.add(match.seen.id)
        if history.exact:
            yield from _unasked(history, name, channel, asked_for)


def _unasked(history: History, name: str, channel: Timeline, asked_for: set[str]) -> Iterator[str]:
    """Yield the events without a command. Conversations with a lost response are left out, because its effect is unknown."""
    complete = {command.conversation for command in history.commands} - {
        command.conversation for command in history.commands if command.outcome != "acknowledged"
    }
    for seen in channel.events:
        if seen.conversation in complete and seen.id not in asked_for:
            yield f"{name}: nobody asked for {seen.id}, a {seen.type} of {seen.conversation}"


def shows(seen: Seen, effect: Effect) -> bool:
    """Say whether an event is the one that a command must have caused."""
    return seen.type == effect.type and all(
        _at(seen.data, path) == value for path, value in effect.data.items()
    )


def _at(data: Any, path: str) -> Any:
    for name in path.split("."):
        data = data.get(name, _MISSING) if isinstance(data, dict) else _MISSING
    return data


def effects_of(step: ChatStep, response: Any, closed: bool) -> tuple[Effect, ...]:
    """Return the events that an acknowledged `step` must have caused.

    Args:
        response: the JSON of the service's response.
        closed: whether the conversation is known to have been closed before.
    """
    match step.kind:
        case "create":
            return _creation(step, response)
        case "message":
            reopens = closed and step.body["author"]["type"] == "contact"
            message = Effect("message.created", {"message": response})
            reopened = Effect("conversation.reopened", {"conversation.closed": False})
            return (reopened, message) if reopens else (message,)
        case "patch":
            changed = {"changed": ["attributes", "title"], "conversation": response}
            return (Effect("conversation.updated", changed),)
        case "close":
            return (Effect("conversation.closed", {"closedBy": "agent", "conversation": response}),)
        case "rate":
            rated = {"changed": ["rating"], "conversation.rating": response["rating"]}
            return (Effect("conversation.updated", rated),)
        case _:
            assert_never(step.kind)


def _creation(step: ChatStep, response: Any) -> tuple[Effect, ...]:
    if "message" not in step.body:
        return (Effect("conversation.created", {"conversation": response}),)
    created = Effect("conversation.created", {"conversation.id": response["id"]})
    said = {"message.text": step.body["message"]["text"], "message.author.type": "contact"}
    return (created, Effect("message.created", {**said, "conversation": response}))
