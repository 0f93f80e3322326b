"""Sessions of customers: start, upgrade of a visitor, own fields, and sign-out."""

from __future__ import annotations

from typing import Annotated, Any, Final

import orjson
import structlog
from pydantic import Field

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.sessions import client_name
from deskwire.engine.channels.channel import Channel
from deskwire.engine.contacts.blocks import require_not_blocked
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.contacts import change_contact
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.customers.identity import SignedIdentity, identity_invalid, verify_identity
from deskwire.engine.customers.session import (
    CustomerSession,
    check_enabled,
    check_live,
    own_contact_view,
    session_ended,
)
from deskwire.engine.customers.starting import SignIn, StartedSession, start_session
from deskwire.engine.customers.stream import page_in
from deskwire.engine.customers.tokens import SESSION_PREFIX, hash_token, new_session_token
from deskwire.engine.events.log import NO_EVENT_ID
from deskwire.engine.merging.merges import MergeRequest
from deskwire.engine.ports import Reader, Transaction
from deskwire.http.api.auth.customers import START_REFUSALS
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, parse_body
from deskwire.http.api.routing import MEDIUM, OPEN, Routes, Tag, customer
from deskwire.http.resources.conversations.requests import PutContactIdentityRequest
from deskwire.http.resources.customers.requests import CustomerContext, VisitorProfile, context_view
from deskwire.http.resources.fields import Attributes
from deskwire.http.schemas import customers as shapes

log: Final = structlog.get_logger(__name__)

CUSTOMERS: Final = Tag("Customers", "Calls of customers from their own browsers, by the token of a session.")
routes = Routes(CUSTOMERS, customer())
_ME: Final = "/customer/me"


class StartCustomerSessionRequest(Body):
    """The channel, and the customer's identity as a JWT that your backend has signed; a visitor has none.

    `session` is the token that this browser has used so far.
    """

    channel_id: Annotated[str, Field(min_length=1, max_length=40)]
    identity: Annotated[str, Field(min_length=1)] | None = None
    session: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class ChangeCustomerRequest(VisitorProfile):
    """The fields to change. Null clears a field. `context` replaces the previous one."""

    context: CustomerContext | None = None


class SignedProfile(PutContactIdentityRequest):
    """The fields of a contact that an identity may have."""

    attributes: Attributes | None = None


@routes.add(
    "POST",
    "/customer/session",
    OPEN,
    operation_id="startCustomerSession",
    body=StartCustomerSessionRequest,
    limit=MEDIUM,
    answer=shapes.StartedCustomerSession,
    errors=START_REFUSALS,
    unrecorded="The event `contact.session.started` shows it.",
)
async def start(call: Call[StartCustomerSessionRequest, Query]) -> Answer:
    """Start a session of a customer, or continue one, and get its token.

    With `identity`, the contact is created or updated with the signed fields, and the conversations of the visitor whose token is
    in `session` become the contact's. If `session` is of another contact, it ends. The same call may be repeated.

    Without `identity`, the session in `session` continues, or a visitor's begins. Nothing is stored of a visitor before the first
    message.
    """
    with call.services.customers.counters.counting_refusals():
        return await _admitted(call)


async def _admitted(call: Call[StartCustomerSessionRequest, Query]) -> Answer:
    """Return the session that a call starts or continues. Raises all refusals of the call."""
    body, services = call.body, call.services
    project, channel = await services.channels.find(body.channel_id)
    verified = body.identity is not None or (body.session or "").startswith(SESSION_PREFIX)
    services.customers.check_page(call.incoming, channel, verified=verified)
    check_enabled(channel)
    services.customer_limits.start_session(call.address)
    if body.identity is not None:
        return await _signed_in(call, project, channel, body.identity)
    return await _continued_or_visitor(call, project, channel)


@routes.add("GET", _ME, operation_id="getCustomer", answer=shapes.Customer)
async def get_me(call: Call[Body, Query]) -> Answer:
    """Fetch the customer's own contact and session. `id` is null before a visitor's first message."""
    rowid, shown = call.customer.rowid, call.customer
    if rowid is None:
        return _me(shown, None)
    return _me(*await call.services.store.read(InlineQuery(lambda reader: _own(reader, rowid))))


@routes.add(
    "PATCH",
    _ME,
    operation_id="changeCustomer",
    body=ChangeCustomerRequest,
    limit=MEDIUM,
    answer=shapes.Customer,
    errors=("contact_blocked", "no_contact_yet", "signed_field"),
    unrecorded="The event `contact.updated` shows it.",
)
async def change_me(call: Call[ChangeCustomerRequest, Query]) -> Answer:
    """Change the customer's own fields, or report the page that the customer is on.

    A signed-in customer can't change signed fields, and can fill in others only while they are empty.
    """
    rowid, now = call.customer.rowid, call.services.clock()
    if rowid is None:
        raise Conflict(
            "Nothing is stored of a visitor before the first message: send these fields with it.",
            code="no_contact_yet",
        )
    answer = await call.services.store.write(lambda tx: _changed(tx, rowid, call.body, now))
    call.services.customers.forget(call.customer)
    call.services.customer_streams.set_page(call.customer.id, page_in(answer[0].context))
    return _me(*answer)


@routes.add(
    "DELETE",
    _ME,
    operation_id="endCustomerSession",
    answer=shapes.CustomerSessionEnded,
    forgets=True,
    unrecorded="Customers are not users of the service.",
)
async def sign_out(call: Call[Body, Query]) -> Answer:
    """Sign out: end this session. Its token is refused from then on, and its streams end."""
    rowid, now = call.customer.rowid, call.services.clock()
    if rowid is not None:
        await call.services.store.write(lambda tx: tx.end_customer_session(rowid, now))
    return {"ended": True}


async def _continued_or_visitor(
    call: Call[StartCustomerSessionRequest, Query], project: Project, channel: Channel
) -> Answer:
    """Return the session of the token in the call, or that of a new visitor. Raises Unauthenticated."""
    services, shown, now = call.services, call.body.session, call.services.clock()
    if shown is not None:
        session = await services.customers.authenticate(shown, now)
        if session.channel.rowid != channel.rowid:
            raise session_ended("The session belongs to another channel.")
        return await _started(call, shown, session, "resumed")
    return await _started(call, *services.customers.new_visitor(project, channel, now), "visitor")


async def _signed_in(
    call: Call[StartCustomerSessionRequest, Query], project: Project, channel: Channel, identity: str
) -> Answer:
    """Return the session of a signed identity. Raises Unauthenticated."""
    services, now, token = call.services, call.services.clock(), new_session_token()
    if channel.identity_mode == "none":
        raise identity_invalid("This channel takes no signed identities (`identity.mode` is none).")
    verified = verify_identity(channel, services.customers.secrets_of(channel, now), identity, now)
    wanted = _sign_in(call, project, channel, verified, token)
    started = await services.store.write(lambda tx: start_session(tx, wanted, now))
    if started.visitor is not None:
        await _merge(call, project, started, started.visitor)
    if started.ended or started.visitor is not None:
        # Before the response, no node may accept the ended token.
        await services.cluster.wait_for_all_nodes()
    if started.resumed and call.body.session is not None:
        services.customers.forget(started.session)
        token = call.body.session
    return await _started(call, token, started.session, "resumed" if started.resumed else "signed")


def _sign_in(
    call: Call[StartCustomerSessionRequest, Query],
    project: Project,
    channel: Channel,
    verified: SignedIdentity,
    token: str,
) -> SignIn:
    """Return the validated identity. Raises Unauthenticated (`identity_invalid`) naming each bad field."""
    try:
        profile = parse_body(SignedProfile, orjson.dumps(verified.profile))
    except (BadRequest, Invalid) as refused:
        found = "; ".join(f"{each.pointer.removeprefix('/')}: {each.message}" for each in refused.problems)
        raise identity_invalid(f"It has bad fields. {found or refused.detail}") from None
    except (TypeError, orjson.JSONEncodeError):
        raise identity_invalid("A claim holds what JSON can't, or an integer of more than 64 bits.") from None
    given = profile.model_fields_set - {"attributes"}
    return SignIn(
        project,
        channel,
        verified.user_id,
        {name: getattr(profile, name) for name in given},
        profile.attributes,
        hash_token(token),
        client_name(call.incoming.headers.get("user-agent")),
        None if call.body.session is None else hash_token(call.body.session),
    )


async def _merge(
    call: Call[StartCustomerSessionRequest, Query], project: Project, started: StartedSession, visitor: str
) -> None:
    """Merge a visitor into the identified contact.

    The fields that the visitor has filled in are not taken over (see `MergeRequest`). If the merge is refused, the customer is
    signed in without it, because a customer can't remove the reason. Agents can merge the contacts later. Raises Unavailable
    (`merge_under_way`), after which the call may be repeated.
    """
    actor = Actor("contact", started.contact.id)
    wanted = MergeRequest(started.contact.id, visitor, by_id=True, actor=actor, fills=False)
    try:
        await call.services.merges.merge(project, wanted, call.origin)
    except (Invalid, NotFound) as refused:
        log.warning(
            "customer_session.visitor_not_merged",
            contact=started.contact.id,
            visitor=visitor,
            reason=refused.reason,
            problems=[each.code for each in getattr(refused, "problems", ())],
        )


async def _started(call: Call[Any, Any], token: str, session: CustomerSession, kind: str) -> Answer:
    """Return the response to the start of a session, and count it; `kind` is one of `SessionCounters.started`."""
    rowid, project = session.rowid, session.project.rowid

    def read(reader: Reader) -> tuple[Contact | None, str]:
        contact = None if rowid is None else _own(reader, rowid)[1]
        return contact, reader.newest_event_id(project) or NO_EVENT_ID

    contact, cursor = await call.services.store.read(InlineQuery(read))
    call.services.customers.counters.started[kind] += 1
    return {
        "token": token,
        "expiresAt": iso(session.expires_at),
        "contact": own_contact_view(session, contact),
        "cursor": cursor,
    }


def _own(reader: Reader, rowid: int) -> tuple[CustomerSession, Contact]:
    """Return a stored session with its contact as of now. Raises Unauthenticated if it has ended."""
    session = reader.customer_session_with(rowid)
    contact = None if session is None or session.contact is None else reader.survivor(session.contact.rowid)
    if session is None or session.ended_at is not None or contact is None:
        raise session_ended()
    return session, contact


def _changed(
    tx: Transaction, rowid: int, body: ChangeCustomerRequest, now: int
) -> tuple[CustomerSession, Contact]:
    """Change the contact and context of a session. Raises Forbidden (`signed_field`, `contact_blocked`)."""
    session, contact = _own(tx, rowid)
    check_live(session, now)
    given = {name: getattr(body, name) for name in body.model_fields_set - {"context"}}
    changes = {name: value for name, value in given.items() if getattr(contact, name) != value}
    if session.verified:
        fixed = [name for name in changes if name in session.signed or getattr(contact, name) is not None]
        if fixed:
            names = ", ".join(sorted(fixed))
            raise Forbidden(
                f"These fields come from the site's backend and can't be changed here: {names}.",
                code="signed_field",
            )
    if changes:  # a name may be a message, too
        require_not_blocked(contact)
    contact = change_contact(tx, session.project, contact, changes, now)
    if "context" in body.model_fields_set:
        context = None if body.context is None else context_view(body.context)
        session = replace(session, context=context)
        tx.save_customer_session(session)
    return session, contact


def _me(session: CustomerSession, contact: Contact | None) -> dict[str, Any]:
    about = {
        "id": session.id,
        "channelId": session.channel.id,
        "expiresAt": iso(session.expires_at),
        "context": session.context,
    }
    return {**own_contact_view(session, contact), "session": about}
