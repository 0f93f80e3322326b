"""Channels in the API, and the report on a customer's page."""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field, WithJsonSchema

from deskwire.engine.accounts.identity.algorithms import Algorithm
from deskwire.engine.channels.channel import DEFAULT_COLOUR, ChannelType, IdentityMode, Position
from deskwire.engine.customers.same_site import SameSite as SameSiteAnswer
from deskwire.engine.customers.site_check import FindingCode, Severity
from deskwire.http.schemas.base import ChannelId, Moment, Shape, SurveyId, Url, WorkflowId

Ask = Annotated[
    list[Annotated[str, Field(examples=["email"])]],
    Field(
        description="The fields asked of visitors: `name`, `email`, `phone`, with `?` if they may stay empty."
    ),
]
Hours = Annotated[
    str | None, Field(description="The schedule of business hours; null, because there are none yet.")
]
Widget = Annotated[ChannelType, WithJsonSchema({"type": "string", "enum": list(get_args(ChannelType))})]


class IdentityKey(Shape):
    """A public key that verifies identities. `key` is PEM, and tokens may name its `id` as `kid`."""

    id: Annotated[str, Field(examples=["2026-11"])]
    algorithm: Algorithm
    key: Annotated[str, Field(examples=["-----BEGIN PUBLIC KEY-----\\nMCow…\\n-----END PUBLIC KEY-----\\n"])]


class ChannelIdentity(Shape):
    """The sign-in of customers: `required` takes no visitors, `none` takes visitors only."""

    mode: IdentityMode
    public_keys: list[IdentityKey]
    secret: Annotated[
        str,
        Field(
            description="Signs identities with HS256. The responses that create it show it; all others mask it.",
            examples=["chs_…1a2b"],
        ),
    ]
    previous_secret_expires_at: Annotated[
        Moment | None, Field(description="The time until which the replaced secret counts, too.")
    ]


class ChannelVisitors(Shape):
    """Customers who are not signed in."""

    allowed: bool
    ask: Ask


class WidgetTexts(Shape):
    """The texts of the widget in one language."""

    title: Annotated[str, Field(examples=["Questions?"])]
    greeting: Annotated[str, Field(examples=["Write to us: we answer within an hour."])]
    placeholder: Annotated[str, Field(examples=["Your question"])] | None = None
    offline: Annotated[str, Field(examples=["We are back tomorrow."])] | None = None


class ChannelLook(Shape):
    """The appearance of the widget."""

    colour: Annotated[str, Field(examples=[DEFAULT_COLOUR])]
    position: Position
    texts: Annotated[
        dict[str, WidgetTexts], Field(description="By language (BCP 47). Others get the widget's own texts.")
    ]


class Channel(Shape):
    """A channel: a widget on websites, with the credentials that sign its customers in."""

    id: ChannelId
    type: Widget
    name: Annotated[str, Field(examples=["Shop"])]
    enabled: bool
    origins: Annotated[
        list[Annotated[str, Field(examples=["https://shop.example"])]],
        Field(description="The websites that may show it. The service's own pages always may."),
    ]
    identity: ChannelIdentity
    visitors: ChannelVisitors
    look: ChannelLook
    hours: Hours
    starts_workflow: Annotated[
        WorkflowId | None, Field(description="The workflow that starts with each of its conversations.")
    ]
    survey: Annotated[SurveyId | None, Field(description="The survey shown after a conversation was closed.")]
    native: Annotated[
        bool,
        Field(description="Whether apps outside of browsers may use it, with a signed identity."),
    ]
    created_at: Moment
    updated_at: Moment


class PublicIdentity(Shape):
    """The sign-in of customers."""

    mode: IdentityMode


class PublicChannel(Shape):
    """The settings of a channel that every visitor may see."""

    id: ChannelId
    enabled: bool
    name: Annotated[str, Field(examples=["Shop"])]
    identity: PublicIdentity
    visitors: ChannelVisitors
    look: ChannelLook
    survey: SurveyId | None
    hours: Hours
    expected_wait_s: Annotated[
        int | None,
        Field(ge=0, description="The expected seconds until an answer; null, because it is not known yet."),
    ]


class SiteFinding(Shape):
    """A part of the page that needs a change. With an `error` the widget does not work there."""

    code: FindingCode
    severity: Severity
    message: Annotated[str, Field(examples=["Add https://shop.example to the channel's `origins`."])]


class SiteReport(Shape):
    """The result of a check of a page."""

    url: Annotated[Url, Field(description="Where the page was found, after its redirects.")]
    status: Annotated[int, Field(description="The status of its response.", examples=[200])] | None
    ok: Annotated[bool, Field(description="True if no finding is an error.")]
    same_site: Annotated[
        SameSiteAnswer,
        Field(
            description="Whether the page and this service are of the same site, so that the panel keeps its storage where "
            "third-party cookies are blocked. `unknown` if their common suffix may be one under which names are registered."
        ),
    ]
    findings: list[SiteFinding]
