"""Routes: each declares its access, its input and its response.

The table of routes is the source for the dispatcher and for every description of the API.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, wraps
from types import UnionType
from typing import Final, Literal

from msgspec import Struct, field
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from deskwire.engine.core.errors import DomainError
from deskwire.engine.core.values import replace
from deskwire.engine.events.project_events import Setting
from deskwire.http.api.calls import Answer, B, Call, Handler, Precheck, Q
from deskwire.http.api.input.validation import Body, Empty, Query
from deskwire.http.api.rate_limits import Counted
from deskwire.http.api.services import Limits, Services
from deskwire.http.schemas.base import Shape

BASE: Final = "/v3"
CUSTOMER_PATHS: Final = f"{BASE}/customer/"
_PARAMETER: Final = re.compile(r"<(?:\w+:)?(\w+)>")
# Actions that invalidate the caches of nodes: after the response to one of them, no node uses old data (ADR
# 61).
_OUTDATING: Final = frozenset(
    {
        "account.deleted",
        "account.factors_reset",
        "account.password_changed",
        "account.sessions_ended",
        "account.tokens_revoked",
        "channel.changed",
        "channel.deleted",
        "channel.secret_rotated",
        "contact.erased",
        "contact.session_ended",
        "credential.changed",
        "credential.revoked",
        "credential.rotated",
        "key.revoked",
        "member.added",
        "member.removed",
        "member.role_changed",
        "message.deleted",
        "message.redacted",
        "organisation.changed",
        "project.changed",
        "project.deleted",
        "role.changed",
        "role.deleted",
        "token.ended",
        "webhook.changed",
        "webhook.deleted",
        "webhook.disabled",
    }
)

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

# See `Route.refused_for_now`.
RefusedForNow = Callable[[Services, bytes, Mapping[str, str], DomainError, bool], None]

SMALL: Final = 8 * 1024
MEDIUM: Final = 64 * 1024
LARGE: Final = 512 * 1024
# Limits of bodies in bytes. The fields of a body at their own limits, in any escaping, fit in (ADR 41).
# `WHOLE` names the setting that limits every JSON body; it is for fields that can take more than the other
# limits.
WHOLE: Final = "body_limit_bytes"


# The kinds of credentials that a route accepts.
AccessKind = Literal[
    "none",
    "visitor",
    "server_key",
    "dashboard",
    "either",
    "metrics",
    "user",
    "organisation",
    "project",
    "customer",
]


class RouteAccess(Struct, frozen=True):
    """The credential and the permissions that a route requires.

    `server_key`: a server key, which belongs to one project. `dashboard`: a user and the `project` header.
    `either`: one of these two; a permission is required of the user only. `metrics`: the metrics token, or
    without one a peer on this machine. `user`: a user. `organisation`, `project`: a member of the
    organisation or project that the path names. `customer`: the session of a customer, who calls from a page that
    the channel allows. `visitor`: a session cookie, or no credential. A user shows a
    JWT, or the cookie of a session.

    Args:
        by_parameter: accept the project as a query parameter as well, for clients that can't send headers.
        machines: accept a machine credential of the project as well, if it has the permissions. A server
            key needs none.
        also: permissions required in addition to `permission`, because a call reaches their objects (ADR
            70).
        fresh: a session also needs a proof of who uses it that is at most 15 minutes old (`proofs`).
        session_only: refuse access tokens, which can't be proved again and belong to no browser.
    """

    kind: AccessKind
    permission: str | None = None
    by_parameter: bool = False
    machines: bool = False
    also: tuple[str, ...] = ()
    fresh: bool = False
    session_only: bool = False

    @property
    def permissions(self) -> tuple[str, ...]:
        """The required permissions, `permission` first."""
        return (*(() if self.permission is None else (self.permission,)), *self.also)


OPEN: Final = RouteAccess("none")
VISITOR: Final = RouteAccess("visitor")
SCRAPER: Final = RouteAccess("metrics")
SIGNED_IN: Final = RouteAccess("user")


def in_organisation(permission: str | None = None) -> RouteAccess:
    """Return the access of members of the organisation in the path.

    With `permission`, only of members who have it.
    """
    return RouteAccess("organisation", permission)


def in_project(permission: str | None = None, *also: str) -> RouteAccess:
    """Return the access of members of the organisation that owns the project.

    The path names the project.
    """
    return RouteAccess("project", permission, machines=True, also=also)


def dashboard(permission: str, *also: str) -> RouteAccess:
    """Return the access of a dashboard endpoint with these permissions.

    Source: decisions 3.
    """
    return RouteAccess("dashboard", permission, machines=True, also=also)


def s2s(permission: str | None, *also: str) -> RouteAccess:
    """Return the access of server keys and of machine credentials.

    Machine credentials need these permissions; None stands for no permission.
    """
    return RouteAccess("server_key", permission, machines=True, also=also)


def personal(access: RouteAccess) -> RouteAccess:
    """Return the same access for people only.

    It serves personal data, and routes by which a machine could gain rights.
    """
    return replace(access, machines=False)


def fresh(access: RouteAccess) -> RouteAccess:
    """Return the same access for sessions with a recent proof of who uses them.

    It serves calls by which the thief of a cookie could gain lasting access or take data along. Access tokens and
    machine credentials have the access as before: a token lives for an hour at most.
    """
    return replace(access, fresh=True)


def proved_session(access: RouteAccess) -> RouteAccess:
    """Return the same access for sessions with a recent proof alone, without access tokens.

    It serves calls by which the thief of a token could keep the account after the token's end.
    """
    return replace(access, fresh=True, session_only=True)


def in_session(access: RouteAccess) -> RouteAccess:
    """Return the same access for sessions alone. It serves calls that are about the browser of a session."""
    return replace(access, session_only=True)


def customer() -> RouteAccess:
    """Return the access of customers, by the token of a session in a channel."""
    return RouteAccess("customer")


def either(permission: str, *also: str) -> RouteAccess:
    """Return the access of server keys, and of users with these permissions."""
    return RouteAccess("either", permission, machines=True, also=also)


class Media(Struct, frozen=True):
    """A response that is not JSON.

    It has bytes of this type, with a body for each of these statuses.

    Args:
        bare: statuses without a body.
        sized: True if each body is in memory and has a known length, so that the fast path can send it.
        endless: True for server-sent events: the fast path sends them in chunks until the client disconnects.
    """

    content_type: str
    statuses: tuple[int, ...] = (200,)
    bare: tuple[int, ...] = ()
    sized: bool = False
    endless: bool = False


# The response of a route that answers 204 without a body.
NOTHING: Final = Media("", statuses=(), bare=(204,))

# The response of a route: a shape, one of several shapes, or another media type than JSON.
Documented = type[Shape | BaseModel] | UnionType | Media


class Tag(Struct, frozen=True):
    """A group of routes in the reference: its public name and its description.

    Routes of several modules may share a tag.
    """

    name: str
    description: str


class Route(Struct, frozen=True):
    """One endpoint. `summary` is the first line of its handler's docstring.

    An `idempotent` route makes its change in one commit, so it accepts an `Idempotency-Key`. A `watching`
    route monitors the service and is answered under any load.

    Args:
        operation_id: its public and stable name, unique among all routes, independent of the handler's
            name.
        tag: its group in the reference.
        limit: bytes of the body, or the name of the setting with this limit; None for a body of any length.
        lines: the models of the lines of an NDJSON body.
        further: checks that the handler makes itself, so that a refusal names every problem of a
            request.
        answer: the response of a successful call; a test fails for a route without one.
        errors: codes of its refusals, except those that follow from its access, path and body.
        quota: the quota that a call counts against.
        records: the actions that a call may record in the audit trail. Its handler's store signs them.
        forgets: True if a call invalidates caches of nodes without one of these actions.
        unrecorded: the reason why a changing call is not in the audit trail.
        tells: the setting that agents are notified of by `settings.changed`.
        tagged: True if its response has an `ETag`, or its changes accept `If-Match`; see `Call.seen`.
        held: True if a call waits during a database outage; see `HeldCalls`. It changes nothing and may be
            repeated.
        refused_for_now: called with the services, body, query and refusal of a call that may succeed later,
            and whether its caller is known.
        revalidated: True if a tagged response is 304 for a client that names its tag in `If-None-Match`.
    """

    method: Method
    path: str
    operation_id: str
    tag: Tag
    access: RouteAccess
    handler: Handler
    body: type[Body] | None
    query: type[Query]
    json_only: bool
    limit: int | str | None
    streamed: bool
    idempotent: bool
    watching: bool
    whole: bool
    lines: tuple[type[Body], ...] = ()
    answer: Documented | None = None
    errors: tuple[str, ...] = ()
    quota: Counted = "calls"
    further: tuple[Precheck, ...] = ()
    records: tuple[str, ...] = ()
    unrecorded: str = ""
    tells: Setting | None = None
    forgets: bool = False
    tagged: bool = False
    held: bool = False
    refused_for_now: RefusedForNow | None = None
    revalidated: bool = False

    @property
    def summary(self) -> str:
        """The summary of the endpoint in one line."""
        return (self.handler.__doc__ or "").strip().split("\n")[0]

    def body_max(self, limits: Limits) -> int | None:
        """Return the limit of the body in bytes under the settings.

        Returns None for no limit.
        """
        if isinstance(self.limit, int):
            return min(self.limit, limits.body_limit_bytes)
        return None if self.limit is None else int(getattr(limits, self.limit))

    @property
    def outdates(self) -> bool:
        """True if a call may invalidate caches of nodes.

        That must be done before the call is answered.
        """
        return self.forgets or not _OUTDATING.isdisjoint(self.records)

    @property
    def direct(self) -> bool:
        """True if the fast path can serve it.

        The request must be JSON in one piece, and the length of the response known unless it is endless.
        """
        plain = self.json_only and not self.streamed
        if isinstance(self.answer, Media) and self.answer is not NOTHING:
            return plain and (self.answer.endless or (self.whole and self.answer.sized))
        return plain and self.whole

    @property
    def for_customers(self) -> bool:
        """True if pages of any origin may read its responses.

        It takes no cookie, so that a page can do no more with it than the token allows that it has.
        """
        return self.path.startswith(CUSTOMER_PATHS)

    @property
    def public_path(self) -> str:
        """The path as shown to readers."""
        return public_path(self.path)


@lru_cache(maxsize=1024)  # there are a few dozen rules; a scrape asks for each several times
def public_path(rule: str) -> str:
    """Return a path of the route table as shown to readers.

    Example: `/v3/s2s/contacts/{userId}`.
    """
    return _PARAMETER.sub(lambda match: f"{{{to_camel(match[1])}}}", rule)


class Routes(Struct):
    """The routes of one resource, collected by a decorator."""

    tag: Tag
    access: RouteAccess | None = None
    prefix: str = BASE
    watching: bool = False
    unrecorded: str = ""
    table: list[Route] = field(default_factory=list)

    def add(
        self,
        method: Method,
        path: str,
        access: RouteAccess | None = None,
        *,
        operation_id: str,
        body: type[Body] | None = None,
        query: type[Query] = Query,
        json_only: bool = True,
        limit: int | str | None = SMALL,
        streamed: bool = False,
        idempotent: bool = False,
        whole: bool = True,
        lines: tuple[type[Body], ...] = (),
        answer: Documented | None = None,
        errors: tuple[str, ...] = (),
        quota: Counted = "calls",
        further: tuple[Precheck, ...] = (),
        records: tuple[str, ...] = (),
        unrecorded: str = "",
        tells: Setting | None = None,
        forgets: bool = False,
        tagged: bool = False,
        held: bool = False,
        refused_for_now: RefusedForNow | None = None,
        revalidated: bool = False,
    ) -> Callable[[Callable[[Call[B, Q]], Awaitable[Answer]]], Handler]:
        """Register the decorated handler.

        Args:
            path: relative to the base; `<name>` is a path parameter.
            access: overrides the access of the group.
            operation_id: its public name, in camel case.
            json_only: refuse content types other than JSON.
            limit: see `Route`.
            streamed: leave the body to the handler, and its limit unless the request declares the length.
            whole: the response is complete before it is sent.
            lines: models of the lines of a streamed NDJSON body.
            idempotent: accept an `Idempotency-Key`; the handler changes data by `Call.commit` or
                `Call.around`.
            answer, errors: the response, and the codes of refusals beyond the usual ones.
            quota: the quota that a call counts against.
            further, records, forgets, tagged, held, refused_for_now, revalidated: see `Route`.
            unrecorded: overrides that of the group.
            tells: see `Route`. The handler's store sends the notification.
        """
        chosen = access or self.access
        assert chosen is not None, "a route needs its access"
        if body is None and method != "GET":
            body = Empty

        def register(handler: Callable[[Call[B, Q]], Awaitable[Answer]]) -> Handler:
            notifying_handler = handler if tells is None else _notifying(handler, tells)
            route = Route(
                method,
                self.prefix + path,
                operation_id,
                self.tag,
                chosen,
                _signed(notifying_handler) if records else notifying_handler,
                body,
                query,
                json_only,
                limit,
                streamed,
                idempotent,
                self.watching,
                whole,
                lines,
                answer,
                errors,
                quota,
                further,
                records,
                "" if records else unrecorded or self.unrecorded,
                tells,
                forgets,
                tagged,
                held,
                refused_for_now,
                revalidated,
            )
            self.table.append(route)
            return handler

        return register


def _signed(handler: Callable[[Call[B, Q]], Awaitable[Answer]]) -> Handler:
    """Return the handler with a store that writes in the caller's name."""

    @wraps(handler)
    def signed(call: Call[B, Q]) -> Awaitable[Answer]:
        return handler(call.signed())

    return signed


def _notifying(handler: Callable[[Call[B, Q]], Awaitable[Answer]], what: Setting) -> Handler:
    """Return the handler with a store that notifies agents of its changes.

    The notification names the last object in the path, if there is one.
    """

    @wraps(handler)
    def notifying(call: Call[B, Q]) -> Awaitable[Answer]:
        own = [value for name, value in call.path.items() if name not in ("organisation_id", "project_id")]
        return handler(call.notifying(what, own[-1] if own else None))

    return notifying
