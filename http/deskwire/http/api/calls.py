"""The checked call that a handler is given, with its caller, and the answers that it can give."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct, field
from werkzeug.http import parse_etags

from deskwire.engine.accounts.credentials import Identity
from deskwire.engine.accounts.machines import EVERY_PERMISSION, Machine
from deskwire.engine.accounts.people import PERMISSIONS, Organisation, Project, Role, ServerKey, User
from deskwire.engine.accounts.sessions import Session
from deskwire.engine.audit.trail import ANONYMOUS, Actor, By
from deskwire.engine.core.errors import Forbidden, PersonRequired
from deskwire.engine.core.precondition import ANY, Precondition
from deskwire.engine.core.values import replace
from deskwire.engine.events.internal import Setting
from deskwire.engine.events.telling import Telling
from deskwire.engine.idempotency.idempotent_requests import IdempotentRequest, ResponseHook
from deskwire.engine.ports import Store, Transaction
from deskwire.http.api.input.headers import Fields
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.machines import WhileGood
from deskwire.http.api.services import Services

T = TypeVar("T")
B = TypeVar("B", bound=Body)
Q = TypeVar("Q", bound=Query)

_TOLD: Final = 1_000
"""Projects of an organisation whose agents are told of a change to its members, at the most: the newest."""
_NEWEST: Final = (1 << 63) - 1


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


class Call(Struct, Generic[B, Q], frozen=True):
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
    once: IdempotentRequest | None = None

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
    ) -> ResponseHook[T] | None:
        """Return what a commit needs around it under an `Idempotency-Key`, None without one; see `ResponseHook`."""
        return None if self.once is None else ResponseHook(self.once, shown, subject)

    def around(
        self,
        job: Callable[[Transaction], T],
        shown: Callable[[T], Mapping[str, Any]],
        subject: str | None = None,
    ) -> Callable[[Transaction], T]:
        """The job, which under an `Idempotency-Key` is carried out once; see `IdempotentRequest.around`."""
        return job if self.once is None else self.once.around(job, shown, subject)

    @property
    def seen(self) -> Precondition:
        """The conditions that the headers `If-Match` and `If-None-Match` set on the object to change.

        Tags are compared weakly, for proxies that pack responses make weak ones of ours (ADR 56).
        """
        headers = self.incoming.headers
        return Precondition(_tags(headers.getlist("if-match")), _tags(headers.getlist("if-none-match")))

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
    def while_good(self) -> Store:
        """The store for reading what is sent piece by piece: it refuses to go on when a machine credential has ended.

        Its reads raise Unauthenticated, and Forbidden if the credential has lost a permission that it had at first.
        """
        machine, services = self.access.machine, self.services
        if machine is None:
            return services.store
        return WhileGood(services.store, self.access.authorizes_as, machine.permissions, services.clock)

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
        """The signed-in user's role in that organisation. Raises Forbidden for a machine."""
        if self.access.machine is not None:
            raise PersonRequired
        assert self.access.role is not None, "the route's access has no role"
        return self.access.role

    @property
    def user(self) -> User:
        """The signed-in user. Raises Forbidden for a machine."""
        if self.access.machine is not None:
            raise PersonRequired
        assert self.access.user is not None, "the route's access has no user"
        return self.access.user


class Caller(Struct, frozen=True):
    """The caller, as far as the route's access tells.

    Args:
        named_project: the header `project` as it came.
        credential: what the caller is known by, a server key or a user with a project; the same for each call.
        session: the browser's session that stands for the user; None if an access token does. Its id is what a commit
            tells when it ends (`SessionCommit`), for what lasts longer than a call.
        token: the access token that stands for the user, of which the same holds.
    """

    project: Project | None = None
    user: User | None = None
    organisation: Organisation | None = None
    role: Role | None = None
    key: ServerKey | None = None
    named_project: str | None = None
    credential: str = ""
    session: Session | None = None
    machine: Machine | None = None
    authorizes_as: str = ""
    token: Identity | None = None

    @property
    def actor(self) -> Actor:
        """The caller as the audit trail names it."""
        if self.key is not None:
            return Actor("server_key", self.key.id)
        if self.machine is not None:
            return Actor("machine", self.machine.id)
        return ANONYMOUS if self.user is None else Actor("user", self.user.id)

    @property
    def known_by(self) -> str | None:
        """The id of the session or access token that stands for the user; a commit tells when it ends."""
        if self.session is not None:
            return self.session.id
        return None if self.token is None else self.token.token

    @property
    def permissions(self) -> frozenset[str]:
        """The permissions of the caller in the project or organisation; a server key has every one."""
        if self.machine is not None:
            return self.machine.permissions
        return EVERY_PERMISSION if self.user is None else PERMISSIONS[self.role or "viewer"]

    def require(self, *permissions: str) -> None:
        """Raise Forbidden naming each of these permissions that the caller lacks."""
        lacking = [each for each in permissions if each not in self.permissions]
        if lacking:
            noun = "permission" if len(lacking) == 1 else "permissions"
            raise Forbidden(f"This needs the {noun} {', '.join(lacking)}.")

    def require_person(self, what: str) -> None:
        """Raise PersonRequired for a machine, if `what` was asked for."""
        if self.machine is not None:
            raise PersonRequired(what)

    @property
    def tenant(self) -> Hashable:
        """The party whose share of the service the call takes from; None for one without a credential."""
        if self.project is not None:
            return self.project.rowid
        return None if self.user is None else ("user", self.user.rowid)


class RawJson(Struct, frozen=True):
    """A response that is a line of JSON already."""

    body: bytes


class Page(Struct, frozen=True):
    """A response that is there as bytes, with headers of its own."""

    body: bytes
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200


class Streamed(Struct, frozen=True):
    """A response that is made while it is sent, however long that takes; a client that stops reading ends it."""

    pieces: AsyncIterator[bytes]
    content_type: str
    headers: Mapping[str, str]
    status: int = 200


NO_CONTENT: Final = RawJson(b"")
"""A response of 204 without a body."""


def _tags(given: Sequence[str]) -> frozenset[str] | None:
    """Return the tags of a header, weak ones too; None if it was not sent."""
    text = ",".join(given)
    if not text:
        return None
    tags = parse_etags(text)
    return frozenset({ANY} if tags.star_tag else tags.as_set(include_weak=True) - {ANY})


class Replayed(Struct, frozen=True):
    """A response that was given before, as it was."""

    body: bytes


class Tagged(Struct, frozen=True):
    """A response of JSON with the `ETag` that a later change may name in `If-Match`."""

    view: Mapping[str, Any]
    tag: str


Answer = Mapping[str, Any] | RawJson | Page | Streamed | Replayed | Tagged

Handler = Callable[[Call[Any, Any]], Awaitable[Answer]]

Look = Callable[[Call[Any, Any]], Awaitable[None]]
"""Raises Invalid with what it finds wrong; what of the body does not fit its model is None (`partial.what_fits`)."""
