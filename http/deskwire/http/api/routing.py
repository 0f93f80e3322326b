"""Routes: each says in one place who may call it, what it takes, and what answers it.

The table of routes is the source for the dispatcher and for everything that is said about the API.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from types import UnionType
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from deskwire.engine.accounts.people import Organisation, Project, Role, ServerKey, User
from deskwire.engine.accounts.sessions import Session
from deskwire.engine.audit.trail import ANONYMOUS, Actor, By
from deskwire.engine.core.record import value
from deskwire.engine.events.internal import Setting
from deskwire.engine.events.telling import Telling
from deskwire.engine.idempotency.once import Keeping, Once
from deskwire.engine.ports import Transaction
from deskwire.http.api.input.headers import Fields
from deskwire.http.api.input.validation import Body, Empty, Query
from deskwire.http.api.rate_limits import Counted
from deskwire.http.api.services import Limits, Services

T = TypeVar("T")
B = TypeVar("B", bound=Body)
Q = TypeVar("Q", bound=Query)

BASE: Final = "/v3"
_TOLD: Final = 1_000
"""Projects of an organisation whose agents are told of a change to its members, at the most: the newest."""
_NEWEST: Final = (1 << 63) - 1
_PARAMETER: Final = re.compile(r"<(?:\w+:)?(\w+)>")
_OUTDATING: Final = frozenset(
    {
        "account.deleted",
        "account.password_changed",
        "account.sessions_ended",
        "account.tokens_revoked",
        "contact.erased",
        "key.revoked",
        "member.removed",
        "member.role_changed",
        "project.changed",
        "project.deleted",
        "webhook.changed",
        "webhook.deleted",
        "webhook.disabled",
    }
)
"""The actions after which what a node remembers is outdated: who hears of one can rely on it at every node (ADR 61)."""

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

SMALL: Final = 8 * 1024
MEDIUM: Final = 64 * 1024
LARGE: Final = 512 * 1024
WHOLE: Final = "body_limit_bytes"
"""Bounds of bodies: what the fields take at their own bounds, however they are escaped, fits in (ADR 43).

`WHOLE`, the setting that bounds every JSON body, is for fields that can take more than that.
"""


@dataclass(frozen=True, slots=True)
class Access:
    """The credential that a route asks for, and the permission.

    `server_key`: a server key, whose project it is. `dashboard`: a user and the `project` header. `either`: one of
    these; the permission is the user's. `metrics`: the metrics token, or if there is none a peer on this machine. The others are for users alone: `user`, and
    `organisation` and `project` of a member of what the path names. A user shows a JWT, or the cookie of a session.
    The project may be named `by_parameter`, too, for clients that can't send headers of their own.
    `visitor`: that cookie, or nothing.
    """

    kind: Literal[
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
    permission: str | None = None
    by_parameter: bool = False


OPEN: Final = Access("none")
VISITOR: Final = Access("visitor")
S2S: Final = Access("server_key")
SCRAPER: Final = Access("metrics")
SIGNED_IN: Final = Access("user")


def in_organisation(permission: str | None = None) -> Access:
    """Return the access of members of the organisation in the path, with this permission if any."""
    return Access("organisation", permission)


def in_project(permission: str | None = None) -> Access:
    """Return the access of members of the organisation that owns the project in the path."""
    return Access("project", permission)


def dashboard(permission: str) -> Access:
    """Return the access of a dashboard endpoint that needs this permission (decisions 3)."""
    return Access("dashboard", permission)


def either(permission: str) -> Access:
    """Return the access of a server key, and of users with this permission."""
    return Access("either", permission)


class Incoming(Protocol):
    """The request as it comes in, for what the route's checks leave to its handler."""

    @property
    def id(self) -> str:
        """The request's own, `req_…`."""

    @property
    def method(self) -> str:
        """The method as in the request line."""

    @property
    def headers(self) -> Fields:
        """The request's headers, all of them."""

    @property
    def secure(self) -> bool:
        """True if the request came by TLS."""

    @property
    def body(self) -> AsyncIterable[bytes]:
        """The pieces of the body, if the route is `streamed`; otherwise they have been read."""

    def drop(self) -> None:
        """End the connection at once, whatever waits in it."""

    def expect_reader(self) -> None:
        """Have the connection ended when its peer is gone without a word: a response is to last for long."""


@value
class Call(Generic[B, Q]):
    """One checked request; `address` is the client's, as far as trusted proxies tell, else the peer's.

    With `once` it has an `Idempotency-Key`, and what it does must be done by `commit`, or within `around`.
    """

    services: Services
    access: Caller
    path: Mapping[str, str]
    query: Q
    body: B
    raw: bytes
    incoming: Incoming
    address: str | None = None
    once: Once | None = None

    async def commit(
        self,
        job: Callable[[Transaction], T],
        shown: Callable[[T], Mapping[str, Any]],
        subject: str | None = None,
    ) -> Mapping[str, Any]:
        """Write, and answer with what `shown` makes of the result; see `around`."""
        return shown(await self.services.store.write(self.around(job, shown, subject)))

    def keeping(
        self, shown: Callable[[T], Mapping[str, Any]], subject: str | None = None
    ) -> Keeping[T] | None:
        """Return what a commit needs around it under an `Idempotency-Key`, None without one; see `Keeping`."""
        return None if self.once is None else Keeping(self.once, shown, subject)

    def around(
        self,
        job: Callable[[Transaction], T],
        shown: Callable[[T], Mapping[str, Any]],
        subject: str | None = None,
    ) -> Callable[[Transaction], T]:
        """The job, which under an `Idempotency-Key` is carried out once; see `Once.around`."""
        return job if self.once is None else self.once.around(job, shown, subject)

    @property
    def by(self) -> By:
        """The author, in the audit trail, of what this call does."""
        return By(self.access.actor, self.services.clock(), self.address, self.incoming.id)

    def telling(self, what: Setting, object_id: str | None) -> Call[B, Q]:
        """Return the same call, whose store tells the agents of its projects that this has changed."""
        services, owner, project = self.services, self.access.organisation, self.access.project

        def concerned(tx: Transaction) -> Sequence[Project]:
            if project is not None:
                return (project,)
            return () if owner is None else tx.projects(owner.rowid, None, _NEWEST, _TOLD)

        store = Telling(services.store, services.clock, what, concerned, object_id)
        return replace(self, services=replace(services, store=store))

    def signed(self, user: User | None = None) -> Call[B, Q]:
        """Return the same call, whose store writes in its name; or in that of a user who has just proved to be one."""
        by = self.by if user is None else replace(self.by, actor=Actor("user", user.id))
        return replace(self, services=self.services.signed(by))

    @property
    def project(self) -> Project:
        """The project of the credential or the `project` header."""
        assert self.access.project is not None, "the route's access has no project"
        return self.access.project

    @property
    def organisation(self) -> Organisation:
        """The organisation in the path, or that of the project in the path."""
        assert self.access.organisation is not None, "the route's access has no organisation"
        return self.access.organisation

    @property
    def role(self) -> Role:
        """The signed-in user's role in that organisation."""
        assert self.access.role is not None, "the route's access has no role"
        return self.access.role

    @property
    def user(self) -> User:
        """The signed-in user."""
        assert self.access.user is not None, "the route's access has no user"
        return self.access.user


@value
class Caller:
    """The caller, as far as the route's access tells.

    Args:
        named_project: the header `project` as it came.
        credential: what the caller is known by, a server key or a user with a project; the same for each call.
        session: the browser's session that stands for the user; None if an access token does. Its id is what a commit
            tells when it ends (`SessionCommit`), for what lasts longer than a call.
    """

    project: Project | None = None
    user: User | None = None
    organisation: Organisation | None = None
    role: Role | None = None
    key: ServerKey | None = None
    named_project: str | None = None
    credential: str = ""
    session: Session | None = None

    @property
    def actor(self) -> Actor:
        """The caller as the audit trail names it."""
        if self.key is not None:
            return Actor("server_key", self.key.id)
        return ANONYMOUS if self.user is None else Actor("user", self.user.id)

    @property
    def tenant(self) -> Hashable:
        """The party whose share of the service the call takes from; None for one without a credential."""
        if self.project is not None:
            return self.project.rowid
        return None if self.user is None else ("user", self.user.rowid)


@dataclass(frozen=True, slots=True)
class RawJson:
    """A response that is JSON bytes already."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Page:
    """A response that is there as bytes, with headers of its own."""

    body: bytes
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True)
class Streamed:
    """A response that is made while it is sent, however long that takes; a client that stops reading ends it."""

    pieces: AsyncIterator[bytes]
    content_type: str
    headers: Mapping[str, str]
    status: int = 200


NO_CONTENT: Final = RawJson(b"")
"""A response of 204 without a body."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A response that was given before, as it was."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Media:
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

Documented = type[BaseModel] | UnionType | Media
"""The response of a route: a shape, one of several, or something else than JSON."""

Answer = Mapping[str, Any] | RawJson | Page | Streamed | Replayed
Handler = Callable[[Call[Any, Any]], Awaitable[Answer]]
Look = Callable[[Call[Any, Any]], Awaitable[None]]
"""Raises Invalid with what it finds wrong; what of the body does not fit its model is None (`partial.what_fits`)."""


@dataclass(frozen=True, slots=True)
class Tag:
    """The group that routes are listed in: its public name, and its description.

    Routes of several modules may be in one group; they share its tag.
    """

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Route:
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
    """

    method: Method
    path: str
    operation_id: str
    tag: Tag
    access: Access
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
    further: tuple[Look, ...] = ()
    records: tuple[str, ...] = ()
    unrecorded: str = ""
    tells: Setting | None = None
    forgets: bool = False

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


@dataclass(slots=True)
class Routes:
    """The routes of one resource, gathered by decorator."""

    tag: Tag
    access: Access | None = None
    prefix: str = BASE
    watching: bool = False
    unrecorded: str = ""
    table: list[Route] = field(default_factory=list)

    def add(
        self,
        method: Method,
        path: str,
        access: Access | None = None,
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
        further: tuple[Look, ...] = (),
        records: tuple[str, ...] = (),
        unrecorded: str = "",
        tells: Setting | None = None,
        forgets: bool = False,
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
            further, records, forgets: see `Route`.
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
