"""Subscriptions of browsers, pushes, and the store port of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.notifications import NotificationSettings
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.values import replace
from deskwire.engine.push.rules import NotificationCause

PushStatus = Literal["waiting", "sending", "sent", "notSent"]
PushReason = Literal[
    "accepted",
    "accessLost",
    "deskOpen",
    "erased",
    "expired",
    "gone",
    "interrupted",
    "quietHours",
    "refused",
    "seen",
    "settings",
    "subscriptionEnded",
    "superseded",
    "tooMany",
    "unanswered",
    "unreadable",
]
"""Why a push ended."""

LIFETIME_MS: Final = 4 * 3_600_000
"""Time after an event in which its pushes are attempted. Later, the notification would be no news."""
KEPT_MS: Final = 7 * 24 * 3_600_000
"""Time for which an ended push stays listed."""
WAITING_MAX: Final = 100
"""Maximum number of waiting pushes of a browser, one for each conversation."""


class PushSubscription(Struct, frozen=True):
    """The subscription of a browser session.

    Args:
        session, user: storage keys.
        endpoint_hash: SHA-256 of the endpoint, by which a browser is recognised.
        sealed: the endpoint and the keys of the browser, encrypted (`endpoint.PushEndpoint`).
        created_at: time (ms) of the subscription; earlier events are not pushed.
        held_until: time (ms) before which nothing is sent, after a refusal of the push service.
        rowid: storage key, 0 before it is stored.
    """

    session: int
    user: int
    endpoint_hash: bytes
    sealed: bytes
    created_at: int
    held_until: int = 0
    rowid: int = 0


class PushRecipient(Struct, frozen=True):
    """A subscription of a member of a project who may read its conversations.

    Args:
        user: storage key.
        client: the `User-Agent` of the session.
        teams: ids of the user's teams in the project.
        waiting: number of waiting pushes.
    """

    subscription: int
    user: int
    user_id: str
    client: str
    created_at: int
    settings: NotificationSettings
    teams: frozenset[str]
    waiting: int


class Push(Struct, frozen=True):
    """A push: one event for one browser. Times are in milliseconds.

    Args:
        user, project: storage keys.
        subscription: storage key; None after the subscription has ended.
        client: the `User-Agent` of the browser.
        conversation, event: ids.
        at: time of the event.
        due_at: time of the next attempt. During an attempt, the time after which it counts as interrupted.
        detail: the last failure: a status of the push service, or an error of the connection.
        rowid: storage key, 0 before it is stored.
    """

    id: str
    user: int
    project: int
    subscription: int | None
    client: str
    conversation: str
    event: str
    cause: NotificationCause
    at: int
    created_at: int
    due_at: int
    status: PushStatus = "waiting"
    reason: PushReason | None = None
    detail: str | None = None
    attempts: int = 0
    ended_at: int | None = None
    rowid: int = 0

    @property
    def expires_at(self) -> int:
        """The time after which no attempt begins."""
        return self.at + LIFETIME_MS


def ended(push: Push, reason: PushReason, at: int, detail: str | None = None) -> Push:
    """Return the push with its end."""
    status: PushStatus = "sent" if reason == "accepted" else "notSent"
    return replace(push, status=status, reason=reason, detail=detail, ended_at=at)


def push_view(push: Push, project_id: str) -> dict[str, Any]:
    """Return the push as its user sees it."""
    return {
        "id": push.id,
        "projectId": project_id,
        "conversationId": push.conversation,
        "eventId": push.event,
        "cause": push.cause,
        "client": push.client,
        "status": push.status,
        "reason": push.reason,
        "detail": push.detail,
        "attempts": push.attempts,
        "createdAt": iso(push.created_at),
        "nextAttemptAt": iso(push.due_at) if push.status == "waiting" else None,
        "endedAt": iso_or_none(push.ended_at),
    }


class WebPushReader(Protocol):
    """Queries on subscriptions and pushes."""

    def push_key(self) -> bytes | None:
        """Return the encrypted key of the installation."""

    def push_subscription(self, session_id: str) -> PushSubscription | None:
        """Return the subscription of a session (id)."""

    def push_subscription_with(self, subscription: int) -> PushSubscription | None:
        """Return the subscription with this storage key."""

    def push_session(self, subscription: int) -> str | None:
        """Return the id of the session of a subscription (storage key)."""

    def push_projects(self) -> Sequence[tuple[int, int | None]]:
        """Return the projects (storage keys) with a subscribed member, each with the position up to which events are decided."""

    def push_recipients(self, project: int, subscription: int | None = None) -> Sequence[PushRecipient]:
        """Return the subscriptions of a project (storage key) in order of their storage keys, or only the one with this key."""

    def push_with(self, push: int) -> Push | None:
        """Return the push with this storage key."""

    def due_pushes(self, now: int, limit: int) -> Sequence[int]:
        """Return the storage keys of pushes that are due at `now` (ms): the oldest one of each subscription, and interrupted ones."""

    def own_pushes(self, user: int, before: int, limit: int) -> Sequence[tuple[Push, str]]:
        """Return the pushes of a user (storage key), newest first, with storage keys below `before` and the ids of their projects."""

    def saw_since(self, user: int, conversation: int, message_id: str | None, at: int) -> bool:
        """Return whether a user has seen a conversation (storage keys) since a time (ms), up to a message if one is given."""


class WebPushTransaction(WebPushReader, Protocol):
    """Changes of subscriptions and pushes."""

    def put_push_key(self, sealed: bytes, replaced: bytes | None, at: int) -> bool:
        """Store the key of the installation, if the present one is `replaced`. A replaced key ends all subscriptions."""

    def put_push_subscription(self, subscription: PushSubscription) -> None:
        """Store the subscription of a session instead of an earlier one, and instead of another session's of the same browser."""

    def delete_push_subscription(self, subscription: int) -> None:
        """Delete the subscription with this storage key."""

    def hold_push_subscription(self, subscription: int, until: int) -> None:
        """Send nothing to a subscription before a time (ms)."""

    def claim_push_subscriptions(self, subscriptions: Sequence[int]) -> Sequence[int]:
        """Return those of these subscriptions that exist, which then stay until the end of the transaction."""

    def move_push_cursor(self, project: int, before: int | None, position: int) -> bool:
        """Move the position of a project (storage key), if it is still `before`. Return whether it was."""

    def drop_idle_push_cursors(self) -> None:
        """Delete the positions of projects without a subscription."""

    def supersede_pushes(self, push: Push) -> None:
        """End the waiting pushes of the same subscription and conversation, at the creation of this one."""

    def insert_push(self, push: Push) -> None:
        """Store a new push."""

    def save_push(self, push: Push) -> None:
        """Store the state of a push."""

    def prune_pushes(self, now: int, limit: int) -> int:
        """Delete up to `limit` pushes that ended `KEPT_MS` before `now` (ms), and return the number deleted."""
