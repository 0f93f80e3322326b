"""Web push in the API: the subscription of a browser, and pushes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.engine.push.ports import PushReason, PushStatus
from deskwire.engine.push.rules import NotificationCause
from deskwire.http.schemas.base import ConversationId, Count, EventId, Moment, ProjectId, PushId, Shape


class PushSubscriptionInfo(Shape):
    """The subscription of a session's browser."""

    created_at: Moment


class PushState(Shape):
    """The web push of a session: the key with which its browser subscribes (`applicationServerKey`), and its subscription."""

    public_key: Annotated[
        str,
        Field(
            description="A point of P-256 in base64url.",
            examples=[
                "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"
            ],
        ),
    ]
    subscription: PushSubscriptionInfo | None


class Push(Shape):
    """A push notification of one event for one browser.

    `status` is `sent` once the push service of the browser has accepted it, and `reason` says why it ended: `accepted`; `accessLost`; `deskOpen`,
    the desk was open in the browser and notified the user itself; `erased`; `expired`, four hours had passed; `gone`, the push service no
    longer knows the browser; `interrupted`, the service stopped during the attempt; `quietHours`; `refused` by the push service; `seen` by
    the user in the meantime; `settings`, which had changed; `subscriptionEnded`, by sign-out or in the desk; `superseded` by a newer event of the
    conversation; `tooMany` waited; `unanswered`, the request may have arrived and is not repeated; `unreadable`, stored under another secret.
    """

    id: PushId
    project_id: ProjectId
    conversation_id: ConversationId
    event_id: EventId
    cause: Annotated[NotificationCause, Field(description="Why the user is notified.")]
    client: Annotated[
        str,
        Field(
            max_length=120,
            description="The browser by its own name.",
            examples=["Mozilla/5.0 (X11; Linux x86_64) Firefox/142.0"],
        ),
    ]
    status: PushStatus
    reason: PushReason | None
    detail: Annotated[
        str | None,
        Field(
            description="The last failure, such as the status of the push service.", examples=["status 503"]
        ),
    ]
    attempts: Count
    created_at: Moment
    next_attempt_at: Moment | None
    ended_at: Moment | None
