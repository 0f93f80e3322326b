"""Routes: each says in one place who may call it, what it takes, and what answers it.

The table of routes is the source for the dispatcher and for everything that is said about the API.
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
from deskwire.engine.events.internal import Setting
from deskwire.http.api.calls import Answer, B, Call, Handler, Precheck, Q
from deskwire.http.api.input.validation import Body, Empty, Query
from deskwire.http.api.rate_limits import Counted
from deskwire.http.api.services import Limits, Services
from deskwire.http.schemas.base import Shape

BASE: Final = "/v3"
_PARAMETER: Final = re.compile(r"<(?:\w+:)?(\w+)>")
_OUTDATING: Final = frozenset(
    {
        "account.deleted",
        "account.password_changed",
        "account.sessions_ended",
        "account.tokens_revoked",
        "contact.erased",
        "credential.changed",
        "credential.revoked",
        "credential.rotated",
        "key.revoked",
        "member.removed",
        "member.role_changed",
        "message.deleted",
        "message.redacted",
        "project.changed",
        "project.deleted",
        "token.ended",
        "webhook.changed",
        "webhook.deleted",
        "webhook.disabled",
    }
)
"""The actions after which what a node remembers is outdated: who hears of one can rely on it at every node (ADR 61)."""

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

RefusedForNow = Callable[[Services, bytes, Mapping[str, str], DomainError, bool], None]
"""See `Route.refused_for_now`."""

SMALL: Final = 8 * 1024
MEDIUM: Final = 64 * 1024
LARGE: Final = 512 * 1024
WHOLE: Final = "body_limit_bytes"
"""Bounds of bodies: what the fields take at their own bounds, however they are escaped, fits in (ADR 41).

`WHOLE`, the setting that bounds every JSON body, is for fields that can take more than that.
"""


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
]
"""The credentials that a route takes."""


class RouteAccess(Struct, frozen=True):
    """The credential that a route asks for, and the permission.

    `server_key`: a server key, whose project it is. `dashboard`: a user and the `project` header. `either`: one of
    these; the permission is the user's. `metrics`: the metrics token, or if there is none a peer on this machine. The others are for users alone: `user`, and
    `organisation` and `project` of a member of what the path names. A user shows a JWT, or the cookie of a session.
    The project may be named `by_parameter`, too, for clients that can't send headers of their own.
    `visitor`: that cookie, or nothing.

    `machines`: whether a machine credential of the project is taken as well, if it has the permissions. A server key needs
    no permission.
    `also`: permissions that are needed beside `permission`, because a call reaches what these are about (ADR 70).
    """

    kind: AccessKind
    permission: str | None = None
    by_parameter: bool = False
    machines: bool = False
    also: tuple[str, ...] = ()

    @property
    def permissions(self) -> tuple[str, ...]:
        """The permissions that are needed, `permission` first."""
        return (*(() if self.permission is None else (self.permission,)), *self.also)


OPEN: Final = RouteAccess("none")
VISITOR: Final = RouteAccess("visitor")
S2S: Final = RouteAccess("server_key")
SCRAPER: Final = RouteAccess("metrics")
SIGNED_IN: Final = RouteAccess("user")


def in_organisation(permission: str | None = None) -> RouteAccess:
    """Return the access of members of the organisation in the path, with this permission if any."""
    return RouteAccess("organisation", permission)


def in_project(permission: str | None = None, *also: str) -> RouteAccess:
    """Return the access of members of the organisation that owns the project in the path."""
    return RouteAccess("project", permission, machines=True, also=also)


def dashboard(permission: str, *also: str) -> RouteAccess:
    """Return the access of a dashboard endpoint that needs these permissions (decisions 3)."""
    return RouteAccess("dashboard", permission, machines=True, also=also)


def s2s(permission: str | None, *also: str) -> RouteAccess:
    """Return the access of server keys, and of machine credentials with these permissions; None for any of them."""
    return RouteAccess("server_key", permission, machines=True, also=also)


def personal(access: RouteAccess) -> RouteAccess:
    """Return the same access for people alone: of what is somebody's own, or what a machine could gain rights by."""
    return replace(access, machines=False)


def either(permission: str) -> RouteAccess:
    """Return the access of a server key, and of users with this permission."""
    return RouteAccess("either", permission, machines=True)


class Media(Struct, frozen=True):
    """The response of a route that is not JSON: bytes of this type, a body for each of these statuses.

    Args:
        bare: statuses without a body.
        sized: whether each body comes with its length, and from memory, so that the fast path can send it.
    """

    content_type: str
    statuses: tuple[int, ...] = (200,)
    bare: tuple[int, ...] = ()
    sized: bool = False


NOTHING: Final = Media("", statuses=(), bare=(204,))
"""A route that answers 204 without a body."""

Documented = type[Shape | BaseModel] | UnionType | Media
"""The response of a route: a shape, one of several, or something else than JSON."""


class Tag(Struct, frozen=True):
    """The group that routes are listed in: its public name, and its description.

    Routes of several modules may be in one group; they share its tag.
    """

    name: str
    description: str


class Route(Struct, frozen=True):
    """One endpoint. `summary` is the first line of its handler's docstring.

    Of an `idempotent` one the effect is one commit, so that it takes an `Idempotency-Key`. One that is for
    `watching` the service is answered however busy that is.

    Args:
        operation_id: its public and stable name, unique among all routes; no handler's or module's name is public.
        tag: the group that it is listed in.
        limit: bytes that the body may have, or the setting that says so; None for a body of any length.
        lines: the lines that its body may have, if that is NDJSON.
        further: what its handler checks, each by itself, so that a request is refused with everything that is wrong.
        answer: what it answers when all is well; a test fails for a route that does not say.
        errors: codes of its refusals, those aside that its access, its path and its body bring along.
        quota: what a call is counted by.
        records: the actions that the audit trail may have of a call. Its handler has a store that signs them.
        forgets: whether a call removes what nodes may remember, though no such action tells of it.
        unrecorded: of a call that changes something, why the trail has nothing of it.
        tells: what agents are told has changed, by `settings.changed`.
        tagged: whether its response has an `ETag`, or its changes take `If-Match`; see `Call.seen`.
        held: whether a call waits while the database is away; see `Holding`. It changes nothing, and may be tried again.
        refused_for_now: is given the services, body, query, and refusal of a call that may be good later, and whether its
            caller is known.
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

    @property
    def summary(self) -> str:
        """The endpoint in a line: what it does."""
        return (self.handler.__doc__ or "").strip().split("\n")[0]

    def body_max(self, limits: Limits) -> int | None:
        """Return the bytes that the body may have, under the settings; None for any number."""
        if isinstance(self.limit, int):
            return min(self.limit, limits.body_limit_bytes)
        return None if self.limit is None else int(getattr(limits, self.limit))

    @property
    def outdates(self) -> bool:
        """True if a call may change what nodes remember, so that none may rely on it once the call is answered."""
        return self.forgets or not _OUTDATING.isdisjoint(self.records)

    @property
    def direct(self) -> bool:
        """The fitness for the fast path: a call is JSON in one piece, and so is the response, or its length is known."""
        media = isinstance(self.answer, Media) and self.answer is not NOTHING and not self.answer.sized
        return self.whole and self.json_only and not self.streamed and not media

    @property
    def public_path(self) -> str:
        """The path as readers write it."""
        return public_path(self.path)


@lru_cache(maxsize=1024)  # there are a few dozen rules; a scrape asks for each several times
def public_path(rule: str) -> str:
    """Write a path of the URL map as readers do: `/v3/s2s/contacts/{userId}`."""
    return _PARAMETER.sub(lambda match: f"{{{to_camel(match[1])}}}", rule)


class Routes(Struct):
    """The routes of one resource, gathered by decorator."""

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
    ) -> Callable[[Callable[[Call[B, Q]], Awaitable[Answer]]], Handler]:
        """Register the decorated handler.

        Args:
            path: relative to the base, `<name>` stands for a path parameter.
            access: overrides that of the group.
            operation_id: its public name, in camel case.
            json_only: refuse other content types than JSON.
            limit: see `Route`.
            streamed: leave the body to the handler, and its bound as far as its length was not declared.
            whole: answer in one piece, made beforehand.
            lines: of a streamed NDJSON body, what a line may be.
            idempotent: take an `Idempotency-Key`; the handler does what it does by `Call.commit` or `Call.around`.
            answer, errors: what the route answers, and the codes it refuses with beyond the usual ones.
            quota: what its calls are counted by.
            further, records, forgets, tagged, held, refused_for_now: see `Route`.
            unrecorded: overrides that of the group.
            tells: see `Route`. The handler's store tells them.
        """
        chosen = access or self.access
        assert chosen is not None, "a route needs its access"
        if body is None and method != "GET":
            body = Empty

        def register(handler: Callable[[Call[B, Q]], Awaitable[Answer]]) -> Handler:
            told = handler if tells is None else _telling(handler, tells)
            route = Route(
                method,
                self.prefix + path,
                operation_id,
                self.tag,
                chosen,
                _signed(told) if records else told,
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
            )
            self.table.append(route)
            return handler

        return register


def _signed(handler: Callable[[Call[B, Q]], Awaitable[Answer]]) -> Handler:
    """The handler, with a store that writes in the caller's name."""

    @wraps(handler)
    def signed(call: Call[B, Q]) -> Awaitable[Answer]:
        return handler(call.signed())

    return signed


def _telling(handler: Callable[[Call[B, Q]], Awaitable[Answer]], what: Setting) -> Handler:
    """The handler, with a store that tells agents of what it changes: of the object that the path names last, if any."""

    @wraps(handler)
    def telling(call: Call[B, Q]) -> Awaitable[Answer]:
        own = [value for name, value in call.path.items() if name not in ("organisation_id", "project_id")]
        return handler(call.telling(what, own[-1] if own else None))

    return telling
