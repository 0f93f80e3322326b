"""The second decision about a push, when it is to be sent, because much may have changed since the event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import orjson
from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.sessions import SessionLifetime, SessionReader
from deskwire.engine.core.encryption import DecryptionFailed, Encryption
from deskwire.engine.events.types import StoredEvent
from deskwire.engine.push.content import payload_of
from deskwire.engine.push.endpoint import PushEndpoint, opened_endpoint
from deskwire.engine.push.ports import Push, PushReason, PushRecipient, WebPushReader
from deskwire.engine.push.rules import NotifiedUser, is_quiet, notification_cause


class DecisionReader(WebPushReader, SessionReader, Protocol):
    """Queries on everything that decides about a push."""

    def project_with(self, project: int) -> Project | None:
        """Return the project with this storage key."""

    def event(self, project: int, event_id: str) -> StoredEvent | None:
        """Return an event of a project (storage key)."""

    def followers(self, conversations: Sequence[int]) -> Mapping[int, Sequence[str]]:
        """Return the ids of the users who follow conversations (storage keys) and may read them."""

    def lacks_factor(self, organisation: int, user: int) -> bool:
        """Return whether an organisation requires a second factor that a user lacks. Both are storage keys."""


class OutgoingPush(Struct, frozen=True):
    """A push that is to be sent now."""

    push: Push
    endpoint: PushEndpoint
    payload: bytes


def decide(
    reader: DecisionReader,
    push: Push,
    *,
    sealing: Encryption,
    life: SessionLifetime,
    desk_open: bool,
    now: int,
) -> OutgoingPush | PushReason:
    """Return the push with its content as of now, or why it is not sent.

    Args:
        desk_open: whether the desk is open in the browser, which then shows the notification itself.
    """
    if push.subscription is None:
        return "subscriptionEnded"
    subscription = reader.push_subscription_with(push.subscription)
    session_id = reader.push_session(push.subscription)
    session = None if session_id is None else reader.session_with(session_id)
    if subscription is None or session is None or now >= life.ends_at(session):
        return "subscriptionEnded"
    if now >= push.expires_at:
        return "expired"
    project = reader.project_with(push.project)
    found = () if project is None else reader.push_recipients(push.project, push.subscription)
    if project is None or not found:
        return "accessLost"
    if not session.vouched and reader.lacks_factor(project.organisation, push.user):
        return "accessLost"
    event = reader.event(push.project, push.event)
    if event is None:
        return "erased"
    envelope = orjson.loads(event.body)
    reason = _obstacle(reader, push, event, envelope["data"], found[0], now)
    if reason is None and desk_open:
        reason = "deskOpen"
    if reason is not None:
        return reason
    try:
        endpoint = opened_endpoint(sealing, subscription.sealed)
    except DecryptionFailed:
        return "unreadable"
    payload = payload_of(envelope, event.id, project.id, session.user_id, found[0].settings)
    return OutgoingPush(push, endpoint, payload)


def _obstacle(
    reader: DecisionReader,
    push: Push,
    event: StoredEvent,
    data: Mapping[str, Any],
    recipient: PushRecipient,
    now: int,
) -> PushReason | None:
    lane = event.conversation
    followers = frozenset(() if lane is None else reader.followers([lane]).get(lane, ()))
    user = NotifiedUser(recipient.user_id, recipient.teams, lambda _: recipient.user_id in followers)
    if notification_cause(event.type, data, user, recipient.settings) is None:
        return "settings"
    message_id = data["message"]["id"] if "message" in data else None
    if lane is not None and reader.saw_since(push.user, lane, message_id, push.at):
        return "seen"
    return "quietHours" if is_quiet(recipient.settings.quiet_hours, now) else None
