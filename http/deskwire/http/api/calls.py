"""Calls that handlers receive, their callers, and the answers of handlers."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct, field
from werkzeug.http import parse_etags

from deskwire.engine.accounts.credentials import TokenIdentity
from deskwire.engine.accounts.machines import EVERY_PERMISSION, Machine
from deskwire.engine.accounts.people import Organisation, Project, Role, ServerKey, User
from deskwire.engine.accounts.sessions import BrowserSession
from deskwire.engine.audit.trail import ChangeOrigin
from deskwire.engine.core.actor import ANONYMOUS, Actor
from deskwire.engine.core.errors import Forbidden, PersonRequired
from deskwire.engine.core.values import ANY_TAG, Precondition, replace
from deskwire.engine.customers.session import CustomerSession
from deskwire.engine.events.project_events import NotifyingStore, Setting
from deskwire.engine.idempotency.idempotent_requests import OWN_ID, IdempotentRequest, ResponseHook, Subject
from deskwire.engine.ports import Store, Transaction
from deskwire.http.api.auth.credential_caches import RevocableStore
from deskwire.http.api.input.headers import Fields
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.output.responses import json_line
from deskwire.http.api.services import Services

T = TypeVar("T")
B = TypeVar("B", bound=Body)
Q = TypeVar("Q", bound=Query)

# A change to an organisation's members notifies the agents of its newest projects, at most of this number.
_NOTIFIED_PROJECTS_MAX: Final = 1_000
_NEWEST: Final = (1 << 63) - 1


class Incoming(Protocol):
    """The raw request, for the checks that a route leaves to its handler."""

    @property
    def id(self) -> str:
        """The id of the request, `req_…`."""

    @property
    def method(self) -> str:
        """The method in the request line."""

    @property
    def headers(self) -> Fields:
        """The headers of the request."""

    @property
    def secure(self) -> bool:
        """True if the request came over TLS."""

    @property
    def body(self) -> AsyncIterable[bytes]:
        """The chunks of the body if the route is `streamed`.

        For other routes they have been read.
        """

    @property
    def drop(self) -> Callable[[], None]:
        """Ends the connection at once and discards unsent data. It holds nothing of the request."""

    def detect_dead_peer(self) -> None:
        """End the connection when its peer stops responding: the response will take long."""


class Call(Struct, Generic[B, Q], frozen=True):
    """One checked request.

    `address` is the client's as reported by trusted proxies, else the peer's.

    If `once` is set, the request has an `Idempotency-Key`, and the handler must change data by `commit` or
    within `around`.
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
        subject: Subject = OWN_ID,
    ) -> Mapping[str, Any]:
        """Run a job in a transaction and return what `shown` makes of its result.

        See `around`.
        """
        return shown(await self.services.store.write(self.around(job, shown, subject)))

    def keeping(
        self, shown: Callable[[T], Mapping[str, Any]], subject: Subject = OWN_ID
    ) -> ResponseHook[T] | None:
        """Return the wrapper that stores the response of a commit.

        Returns None without an `Idempotency-Key`. See `ResponseHook`.
        """
        return None if self.once is None else ResponseHook(self.once, shown, subject)

    def around(
        self,
        job: Callable[[Transaction], T],
        shown: Callable[[T], Mapping[str, Any]],
        subject: Subject = OWN_ID,
    ) -> Callable[[Transaction], T]:
        """Return the job, wrapped to run only once under an `Idempotency-Key`.

        See `IdempotentRequest.around`.
        """
        return job if self.once is None else self.once.around(job, shown, subject)

    @property
    def seen(self) -> Precondition:
        """The conditions of `If-Match` and `If-None-Match` on the object to change.

        Tags are compared weakly, because proxies that compress responses make our tags weak (ADR 56).
        """
        headers = self.incoming.headers
        return Precondition(_tags(headers.getlist("if-match")), _tags(headers.getlist("if-none-match")))

    def unless_known(
        self, view: Mapping[str, Any], tag: str, headers: Mapping[str, str] | None = None
    ) -> BytesAnswer:
        """Return the object with its `ETag`; without a body, as 304, for a client that names the tag in `If-None-Match`."""
        headers = {"ETag": f'"{tag}"', **(headers or {})}
        if self.seen.excludes(tag):
            return BytesAnswer(b"", "", headers, 304)
        return BytesAnswer(json_line(view), "application/json", headers)

    @property
    def origin(self) -> ChangeOrigin:
        """The origin that the audit trail records for changes of this call."""
        return ChangeOrigin(self.access.actor, self.services.clock(), self.address, self.incoming.id)

    def notifying(self, what: Setting, object_id: str | None) -> Call[B, Q]:
        """Return the same call with a store that notifies the projects' agents."""
        services, owner, project = self.services, self.access.organisation, self.access.project

        def concerned(tx: Transaction) -> Sequence[Project]:
            if project is not None:
                return (project,)
            return () if owner is None else tx.projects(owner.rowid, None, _NEWEST, _NOTIFIED_PROJECTS_MAX)

        store = NotifyingStore(services.store, services.clock, what, concerned, object_id)
        return replace(self, services=replace(services, store=store))

    def signed(self, user: User | None = None) -> Call[B, Q]:
        """Return the same call with a store that writes in its caller's name.

        With `user`, it writes in the name of this user, who has just signed in.
        """
        origin = self.origin if user is None else replace(self.origin, actor=Actor("user", user.id))
        return replace(self, services=self.services.signed(origin))

    @property
    def revocable_store(self) -> Store:
        """The store for responses that are read in parts.

        Reads are refused once a machine credential has ended. Its reads raise Unauthenticated, and
        Forbidden if the credential has lost a permission that it had at the start.
        """
        machine, services = self.access.machine, self.services
        if machine is None:
            return services.store
        return RevocableStore(services.store, self.access.authorizes_as, machine.permissions, services.clock)

    @property
    def project(self) -> Project:
        """The project of the credential or the `project` header."""
        assert self.access.project is not None, "the route's access has no project"
        return self.access.project

    @property
    def customer(self) -> CustomerSession:
        """The session of the calling customer. Its contact's names may be older than the stored ones."""
        assert self.access.customer is not None, "the route is not for customers"
        return self.access.customer

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
    """The caller, as far as the route's access identifies it.

    Args:
        named_project: the value of the header `project`.
        credential: the stable name of the server key, or of the user with a project, that made the call.
        session: the browser session that identifies the user; None with an access token. Long-lived calls
            compare its id with `SessionCommit` to notice its end.
        token: the access token that identifies the user, if any; long-lived calls compare its id likewise.
        customer: the session of a customer, who has no other credential.
        granted: the permissions of the user's role.
    """

    project: Project | None = None
    user: User | None = None
    organisation: Organisation | None = None
    role: Role | None = None
    key: ServerKey | None = None
    named_project: str | None = None
    credential: str = ""
    session: BrowserSession | None = None
    machine: Machine | None = None
    authorizes_as: str = ""
    token: TokenIdentity | None = None
    customer: CustomerSession | None = None
    granted: frozenset[str] = frozenset()

    @property
    def actor(self) -> Actor:
        """The caller as events, activity logs and the audit trail name it."""
        if self.key is not None:
            return Actor("server_key", self.key.id, self.key.label or None)
        if self.machine is not None:
            return Actor("machine", self.machine.id, self.machine.name)
        if self.customer is not None:
            contact = self.customer.contact
            return Actor("contact", None if contact is None else contact.id)
        return ANONYMOUS if self.user is None else Actor("user", self.user.id, self.user.name)

    @property
    def known_by(self) -> str | None:
        """The id of the session or access token that identifies the user or customer.

        Commits that end it carry this id.
        """
        if self.session is not None:
            return self.session.id
        if self.customer is not None:
            return self.customer.id
        return None if self.token is None else self.token.token

    @property
    def permissions(self) -> frozenset[str]:
        """The caller's permissions in the project or organisation.

        A server key has every one, a customer none.
        """
        if self.customer is not None:
            return frozenset()
        if self.machine is not None:
            return self.machine.permissions
        return EVERY_PERMISSION if self.user is None else self.granted

    def require(self, *permissions: str) -> None:
        """Raise Forbidden naming each of these permissions that the caller lacks."""
        lacking = [each for each in permissions if each not in self.permissions]
        if lacking:
            noun = "permission" if len(lacking) == 1 else "permissions"
            raise Forbidden(f"This needs the {noun} {', '.join(lacking)}.")

    def require_person(self, what: str) -> None:
        """Raise PersonRequired if the caller is a machine.

        `what` names the requested object.
        """
        if self.machine is not None:
            raise PersonRequired(what)

    @property
    def tenant(self) -> Hashable:
        """The key of the tenant whose share the call uses.

        The signed-in customers of a project share one that is not the project's own, and its visitors another one, because
        anyone can be a visitor. Returns None without a credential.
        """
        if self.customer is not None:
            return ("customers" if self.customer.verified else "visitors", self.customer.project.rowid)
        if self.project is not None:
            return self.project.rowid
        return None if self.user is None else ("user", self.user.rowid)


class RawJson(Struct, frozen=True):
    """A response body that is already a line of JSON."""

    body: bytes


class BytesAnswer(Struct, frozen=True):
    """A response body that is already bytes, with headers of its own. `cookies` are values of `Set-Cookie`."""

    body: bytes
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    cookies: Sequence[str] = ()


class Streamed(Struct, frozen=True):
    """A response body that is produced while it is sent.

    It ends when the client stops reading.
    """

    pieces: AsyncIterator[bytes]
    content_type: str
    headers: Mapping[str, str]
    status: int = 200


# The answer for status 204.
NO_CONTENT: Final = RawJson(b"")


def _tags(given: Sequence[str]) -> frozenset[str] | None:
    """Return the tags of a header, weak ones included.

    Returns None if the header was not sent.
    """
    text = ",".join(given)
    if not text:
        return None
    tags = parse_etags(text)
    return frozenset({ANY_TAG} if tags.star_tag else tags.as_set(include_weak=True) - {ANY_TAG})


class ReplayedAnswer(Struct, frozen=True):
    """A stored response that is sent again unchanged."""

    body: bytes


class Tagged(Struct, frozen=True):
    """A JSON response with an `ETag`, which a later change may name in `If-Match`."""

    view: Mapping[str, Any]
    tag: str


Answer = Mapping[str, Any] | RawJson | BytesAnswer | Streamed | ReplayedAnswer | Tagged

Handler = Callable[[Call[Any, Any]], Awaitable[Answer]]

# Raises Invalid with the problems that it finds. Fields of the body that do not fit the model are None
# (`valid_part`).
Precheck = Callable[[Call[Any, Any]], Awaitable[None]]
