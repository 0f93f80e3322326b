"""Customers, their sessions in channels, and the page that they are on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from deskwire.http.schemas.base import (
    ChannelId,
    ContactId,
    CustomerSessionId,
    Email,
    EventId,
    Moment,
    PersonName,
    Shape,
    Url,
)
from deskwire.http.schemas.service import ProblemDocument

SignedField = Literal["name", "email", "phone", "avatar", "attributes"]


class PageContext(Shape):
    """The customer's current page, reported by the page itself. Nothing of it is verified."""

    url: Annotated[str, Field(examples=["https://shop.example/cart"])] | None = None
    title: Annotated[str, Field(examples=["Your cart"])] | None = None
    referrer: Annotated[str, Field(examples=["https://shop.example/"])] | None = None
    language: Annotated[str, Field(examples=["en-GB"])] | None = None
    timezone: Annotated[str, Field(examples=["Europe/London"])] | None = None
    custom: Annotated[dict[str, Any], Field(examples=[{"cart": 3}])] | None = None


class OwnContact(Shape):
    """The customer's own contact. Its `id` is null before a visitor's first message."""

    id: ContactId | None
    user_id: Annotated[str, Field(examples=["u-1", "visitor-01KZ00000000000000000000N1"])]
    name: PersonName | None
    email: Email | None
    phone: Annotated[str, Field(examples=["+44 20 7946 0000"])] | None
    avatar: Url | None
    verified: Annotated[bool, Field(description="Whether your backend has signed the identity.")]
    signed: Annotated[list[SignedField], Field(description="The fields that your backend has signed.")]


class OwnSession(Shape):
    """The customer's own session. Each use moves `expiresAt`."""

    id: CustomerSessionId
    channel_id: ChannelId
    expires_at: Moment
    context: PageContext | None


class Customer(OwnContact):
    """The customer's own contact and session."""

    session: OwnSession


class StartedCustomerSession(Shape):
    """A session of a customer.

    `token` is the credential of all other calls of customers. `cursor` is the id of the project's newest event, after which the
    customer's stream begins.
    """

    token: Annotated[str, Field(examples=["ct_QmFzZTY0…"])]
    expires_at: Moment
    contact: OwnContact
    cursor: EventId


class ContactSession(Shape):
    """A live session of a contact in a channel."""

    id: CustomerSessionId
    channel_id: ChannelId
    verified: Annotated[bool, Field(description="Whether your backend has signed the identity.")]
    signed: Annotated[list[SignedField], Field(description="The fields that your backend has signed.")]
    context: PageContext | None
    client: Annotated[str, Field(description="The shortened `User-Agent`.", examples=["Mozilla/5.0 …"])]
    created_at: Moment
    last_used_at: Moment
    expires_at: Moment


class CustomerSessionEnded(Shape):
    """The confirmation of a sign-out."""

    ended: Annotated[bool, Field(json_schema_extra={"const": True})]


class ProofChallenge(Shape):
    """The work to prove: find a number for which the hash of `<challenge>.<number>` begins with `difficulty` zero bits."""

    algorithm: Literal["SHA-256"]
    challenge: Annotated[str, Field(examples=["1-17-1793534400000-c2lnbmF0dXJl"])]
    difficulty: Annotated[int, Field(ge=1, examples=[17])]
    expires_at: Moment


class VisitorLimitProblem(ProblemDocument):
    """An error. For `visitor_limit`, it has the challenge whose proof the same request may carry."""

    challenge: ProofChallenge | None = None


class StartedSession(Shape):
    """The session that was stored, in the event of its start."""

    id: CustomerSessionId
    channel_id: ChannelId
    verified: Annotated[bool, Field(description="Whether your backend has signed the identity.")]
    context: PageContext | None
