"""Conversations of the calling customer: the twins of the S2S calls, in the customer's view.

Every call is confined to the visible conversations of the session's contact; any other id is not found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, Final

import orjson
from pydantic import Field

from deskwire.engine.accounts.sessions import client_name
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.client_ids import ConversationAlreadyStored, require_same_message
from deskwire.engine.conversations.commands import (
    AnswerStep,
    Create,
    MarkReceived,
    PostMessage,
    Rate,
    ReplaceNetworkLogs,
)
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.conversation import Conversation, Message, no_such_conversation
from deskwire.engine.conversations.decide import decide
from deskwire.engine.conversations.events import conversation_view, message_view
from deskwire.engine.conversations.listing import NEWEST_FIRST, ConversationFilter, ConversationPageKey
from deskwire.engine.conversations.threads import (
    ThreadMarks,
    ThreadQuery,
    marks_in_thread,
    read_thread,
    shows_others,
)
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import (
    Conflict,
    Forbidden,
    Gone,
    IdempotencyMismatch,
    Invalid,
    NotFound,
    Problem,
    TooManyRequests,
    Unavailable,
)
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.customers.session import CustomerSession, session_ended
from deskwire.engine.customers.starting import VisitorStart, contact_ref
from deskwire.engine.customers.view import customer_conversation, customer_message, customer_step
from deskwire.engine.ports import Reader
from deskwire.engine.uploads.links import AttachmentsView
from deskwire.http.api.calls import NO_CONTENT, Answer, Call, ReplayedAnswer
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.pagination import EMPTY_PAGE, Paged, page
from deskwire.http.api.routing import LARGE, MEDIUM, NOTHING, Routes, customer
from deskwire.http.resources.conversations.operations import BACK, find, from_cursor, place_of, report_typing
from deskwire.http.resources.conversations.requests import SetContactTypingRequest, ThreadList
from deskwire.http.resources.conversations.s2s import (
    RateConversationRequest,
    ReplaceNetworkLogsRequest,
    ReplyToStepRequest,
)
from deskwire.http.resources.customers.messages import (
    BY_CLIENT_ID,
    ClientId,
    PostCustomerMessageRequest,
    find_own,
    own_conversation,
    post_message_of,
    read_durably,
    replayed,
    require_writer,
)
from deskwire.http.resources.customers.requests import (
    CustomerContext,
    ProofInput,
    VisitorProfile,
    context_view,
)
from deskwire.http.resources.customers.sessions import CUSTOMERS
from deskwire.http.schemas import conversations as public_shapes
from deskwire.http.schemas import customer_conversations as shapes
from deskwire.http.schemas.base import page_of

routes = Routes(
    CUSTOMERS,
    customer(),
    unrecorded="The conversation's events show it, and messages name their authors.",
)
_LIST: Final = "/customer/conversations"
_ONE: Final = f"{_LIST}/<conversation_id>"
_DAY_MS: Final = 86_400_000
_TAG_LENGTH: Final = 32  # hex digits


class StartMyConversationRequest(Body):
    """The first message of a new conversation. `clientId` names the conversation in paths, as `client:<clientId>`.

    `contact` are fields that a visitor has filled in, and `context` is the page that the customer is on. `proof` is the solved
    challenge of an earlier refusal.
    """

    client_id: ClientId
    message: PostCustomerMessageRequest
    contact: VisitorProfile | None = None
    context: CustomerContext | None = None
    proof: ProofInput | None = None


class MarkReceivedRequest(Body):
    """The newest messages that this client has received (`reached`) and shown (`seen`). Without both, everything is read."""

    reached: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    seen: Annotated[str, Field(min_length=1, max_length=40)] | None = None


class CustomerConversationList(Paged):
    """The page of the list."""

    parts = 2


@routes.add(
    "GET",
    _LIST,
    operation_id="listMyConversations",
    query=CustomerConversationList,
    answer=page_of(shapes.CustomerConversation),
    tagged=True,
    revalidated=True,
)
async def list_conversations(call: Call[Body, CustomerConversationList]) -> Answer:
    """List the customer's own conversations, newest activity first. `If-None-Match` with the `ETag` answers 304 if none has changed."""
    query, contact = call.query, call.customer.contact
    after = ConversationPageKey(*query.place) if query.place else None
    if contact is None:
        return _tagged(call, EMPTY_PAGE)
    wanted = ConversationFilter(contact=contact.rowid, visible=True, merged=False)

    def read(reader: Reader) -> tuple[Sequence[Any], Mapping[int, Message]]:
        found = reader.conversations(call.project.rowid, wanted, NEWEST_FIRST, after, query.rows)
        return found, reader.newest_messages([each.conversation.rowid for each in found])

    found, last = await call.services.store.read(read)
    show = _links(call)
    listed = page(
        query,
        found,
        lambda each: conversation_shown(
            each.conversation, each.contact, call.project.id, last.get(each.conversation.rowid), show
        ),
        lambda each: (each.at.value, each.at.rowid),
    )
    return _tagged(call, listed)


@routes.add(
    "POST",
    _LIST,
    operation_id="startMyConversation",
    body=StartMyConversationRequest,
    limit=LARGE,
    answer=shapes.CustomerConversation,
    errors=(
        "contact_blocked",
        "idempotency_answer_erased",
        "idempotency_mismatch",
        "message_required",
        "rate_limited",
        "visitor_limit",
    ),
)
async def start_conversation(call: Call[StartMyConversationRequest, Query]) -> Answer:
    """Start a conversation with its first message. A visitor's contact and session are stored in the same commit.

    The same `clientId` again answers with the stored conversation and `Idempotent-Replayed: true`.
    """
    session, body = call.customer, call.body
    message = await post_message_of(call, body.message, "/message")
    if session.contact is not None:
        owner = session.contact.rowid
        known = await call.services.store.read(
            InlineQuery(lambda reader: reader.conversation_by_client_id(owner, body.client_id))
        )
        if known is not None:
            return await _replayed(call, known, message)
    _check_asked(session, body.contact)
    try:
        return await _started(call, message)
    except ConversationAlreadyStored as stored:
        return await _replayed(call, stored.conversation_id, message)


async def _started(call: Call[StartMyConversationRequest, Query], message: PostMessage) -> Answer:
    """Store the conversation, and for a visitor the contact and the session, in one commit."""
    session, body, services = call.customer, call.body, call.services
    now = services.clock()
    identity = {} if body.contact is None else body.contact.model_dump(exclude_unset=True)
    context = None if body.context is None else context_view(body.context)
    client = client_name(call.incoming.headers.get("user-agent"))
    proof = None if body.proof is None else body.proof.proof
    command = Create(
        new_id("cnv", now),
        call.project.rowid,
        contact_ref(session, identity),
        message=message,
        channel=session.channel.id,
        client_id=body.client_id,
        workflow_id=session.channel.starts_workflow,
    )
    with services.customer_limits.starting_conversation(session, call.address, proof, now):
        services.customer_limits.take_message(session)
        hook = VisitorStart(session, now, context, client)
        try:
            receipt = await services.actors.create(call.project, command, hook)
        except NotFound as error:
            if error.reason != "contact_not_found":
                raise
            raise session_ended() from None  # the contact was erased during the call
    services.customers.forget(session)
    return customer_conversation(receipt.conversation, receipt.message)


async def _replayed(
    call: Call[StartMyConversationRequest, Query], conversation_id: str, message: PostMessage
) -> Answer:
    """Return the stored conversation of a repeated call.

    Raises IdempotencyMismatch if its first message is another one.
    """
    assert message.client_id is not None, "the model requires it"
    client_id = message.client_id

    def read(reader: Reader) -> tuple[Conversation, Contact, Message] | None:
        state, contact = find(reader, call.project, conversation_id)
        found = reader.message_by_client_id(state.rowid, client_id)
        return None if found is None else (state, contact, found)

    stored = await read_durably(call, read)
    if stored is None:
        raise IdempotencyMismatch("The conversation with this clientId began with another message.")
    state, contact, found = stored
    require_same_message(message, found)
    return replayed(conversation_shown(state, contact, call.project.id, found, _links(call)))


@routes.add("GET", _ONE, operation_id="getMyConversation", answer=shapes.CustomerConversation)
async def get_conversation(call: Call[Body, Query]) -> Answer:
    """Fetch one of the customer's own conversations, by its id or as `client:<clientId>`."""

    def read(reader: Reader) -> tuple[Conversation, Contact, Message | None]:
        state, contact = _own(reader, call)
        return state, contact, reader.newest_messages([state.rowid]).get(state.rowid)

    state, contact, last = await call.services.store.read(InlineQuery(read))
    return conversation_shown(state, contact, call.project.id, last, _links(call))


@routes.add(
    "GET",
    f"{_ONE}/messages",
    operation_id="listMyMessages",
    query=ThreadList,
    answer=page_of(shapes.CustomerMessage),
    errors=("message_not_found",),
)
async def list_messages(call: Call[Body, ThreadList]) -> Answer:
    """List the messages of a conversation, oldest first, or newest first with `order=desc`."""
    query = from_cursor(call.query)
    backwards = query.before is not None and query.after is None
    newest_first = query.order == "desc"

    def read(reader: Reader) -> list[tuple[str, Message]]:
        state, _ = _own(reader, call)
        if shows_others(state):
            wanted = ThreadQuery(False, query.after, query.before, newest_first or backwards, query.limit + 1)
            return [(own.id, each.message) for own, each in read_thread(reader, state, wanted)]

        def place(message_id: str | None) -> int | None:
            return None if message_id is None else place_of(reader, state, message_id, internal=False)

        after, before = place(query.after), place(query.before)
        newest, limit = newest_first or backwards, query.limit + 1
        found = reader.messages(
            state.rowid, internal=False, after=after, before=before, limit=limit, newest=newest
        )
        return [(state.id, each) for each in (reversed(found) if newest else found)]

    found = await call.services.store.read(read)
    shown, more = found[: query.limit], len(found) > query.limit
    last = shown[-1][1].id if more else None
    if backwards and not newest_first:
        shown.reverse()
    show = _links(call)
    return {
        "items": [customer_message(message_view(each, own, show)) for own, each in shown],
        "nextCursor": last and (f"{BACK}{last}" if newest_first or backwards else last),
    }


@routes.add(
    "POST",
    f"{_ONE}/messages",
    operation_id="postMyMessage",
    body=PostCustomerMessageRequest,
    limit=LARGE,
    answer=shapes.CustomerMessage,
    errors=(
        "contact_blocked",
        "idempotency_answer_erased",
        "idempotency_mismatch",
        "message_required",
        "rate_limited",
    ),
)
async def post_message(call: Call[PostCustomerMessageRequest, Query]) -> Answer:
    """Send a message. It reopens a closed conversation.

    The same `clientId` again answers with the stored message and `Idempotent-Replayed: true`, for as long as the conversation exists.
    """
    contact, services = call.customer.contact, call.services
    if contact is None:
        raise no_such_conversation()
    named = call.path["conversation_id"]
    identifier = await own_conversation(call) if named.startswith(BY_CLIENT_ID) else named
    command = await post_message_of(call, call.body, "")
    try:
        services.customer_limits.take_message(call.customer)
    except TooManyRequests:
        stored = await _stored_message(call, command)
        if stored is None:
            raise
        return stored
    try:
        # The commit checks whose conversation it is, so that most messages cost no read of their own.
        receipt = await services.actors.ask_where_shown(
            call.project, identifier, replace(command, of_contact=contact.rowid)
        )
    except NotFound:
        # It may be merged into one that is still moving from a contact that is merged into this one.
        await own_conversation(call)
        raise Unavailable("The conversation is being moved; try again.", code="conversation_busy") from None
    except (Conflict, Forbidden, Gone, Invalid):
        await own_conversation(call)  # these refusals would reveal that another contact's conversation exists
        raise
    assert receipt.message is not None, "it was posted, or stored before"
    shown = customer_message(receipt.message)
    if not receipt.replayed:
        return shown
    services.customer_limits.give_back_message(call.customer)
    return replayed(shown)


async def _stored_message(
    call: Call[PostCustomerMessageRequest, Query], command: PostMessage
) -> ReplayedAnswer | None:
    """Return the message of an earlier call with this `clientId`, which the limit does not count; None if there is none."""

    def known(reader: Reader) -> tuple[str, Message] | None:
        identifier, rowid = find_own(reader, call)
        found = reader.message_by_client_id(rowid, call.body.client_id)
        if found is None:
            passed_on = reader.message_passed_on(call.project.rowid, identifier, call.body.client_id)
            return None if passed_on is None else passed_on[::-1]
        return identifier, found

    stored = await read_durably(call, known)
    if stored is None:
        return None
    identifier, message = stored
    require_same_message(command, message)
    return replayed(customer_message(message_view(message, identifier, _links(call))))


@routes.add(
    "POST",
    f"{_ONE}/read",
    operation_id="markMyMessages",
    body=MarkReceivedRequest,
    answer=shapes.CustomerConversation,
)
async def mark_received(call: Call[MarkReceivedRequest, Query]) -> Answer:
    """Record what this client has received and shown, or that the customer has read everything. Marks only grow."""
    body = call.body
    named = {name: getattr(body, name) for name in ("reached", "seen")}

    def read(reader: Reader) -> tuple[Conversation, Contact, list[ThreadMarks]]:
        state, contact = _own(reader, call)
        return state, contact, marks_in_thread(reader, state, named)

    state, contact, marks = await call.services.store.read(InlineQuery(read))
    problems = [
        Problem(f"/{name}", "unknown", "The conversation has no such message.")
        for name, message_id in named.items()
        if message_id is not None and not any(each.has(name) for each in marks)
    ]
    if problems:
        raise Invalid(*problems)
    everything, now = named == {"reached": None, "seen": None}, call.services.clock()
    receipt = None
    for each in marks:
        command = MarkReceived(each.reached, each.seen, everything=everything)
        if decide(each.state, command, now):  # a repeated report costs no commit
            marked = await call.services.actors.ask(call.project, each.state.id, command)
            receipt = marked if each.state.id == state.id else receipt
    if receipt is None:
        return customer_conversation(conversation_view(state, contact, call.project.id))
    return customer_conversation(receipt.conversation)


@routes.add(
    "POST",
    f"{_ONE}/typing",
    operation_id="setMyTyping",
    body=SetContactTypingRequest,
    answer=NOTHING,
    errors=("contact_blocked",),
)
async def set_typing(call: Call[SetContactTypingRequest, Query]) -> Answer:
    """Report to the present agents that the customer is typing, or has stopped. Repeat it every few seconds."""
    state, contact = await call.services.store.read(InlineQuery(lambda reader: _own(reader, call)))
    await require_writer(call)
    return report_typing(call, state.merged_into or state.id, contact)


@routes.add(
    "POST",
    f"{_ONE}/rating",
    operation_id="rateMyConversation",
    body=RateConversationRequest,
    limit=MEDIUM,
    answer=public_shapes.ConversationRating,
    errors=("contact_blocked",),
)
async def rate_conversation(call: Call[RateConversationRequest, Query]) -> Answer:
    """Rate a conversation from 0 to 10, with an optional comment. The same rating without a comment keeps the comment."""
    identifier, body = await own_conversation(call), call.body
    kept = "comment" not in body.model_fields_set
    command = Rate(body.rating, body.comment, keeps_comment=kept)
    actors = call.services.actors
    receipt = await actors.ask_where_shown(call.project, identifier, command, by=call.access.actor)
    state = receipt.after
    assert state.rated_at is not None, "it was rated just now, or before"
    rated = {"rating": state.rating, "ratedAt": iso(state.rated_at)}
    return rated if state.rating_comment is None else {**rated, "comment": state.rating_comment}


@routes.add("GET", f"{_ONE}/workflow", operation_id="getMyWorkflowStep", answer=shapes.CustomerPendingStep)
async def get_workflow_step(call: Call[Body, Query]) -> Answer:
    """Fetch the workflow step that waits for the customer; null if none does."""
    state, _ = await call.services.store.read(InlineQuery(lambda reader: _own(reader, call)))
    return {"step": None if state.run is None else customer_step(state.run.step)}


@routes.add(
    "POST",
    f"{_ONE}/workflow/reply",
    operation_id="replyToMyStep",
    body=ReplyToStepRequest,
    limit=LARGE,
    answer=shapes.CustomerConversation,
    errors=("contact_blocked", "conversation_merged", "step_not_pending", "rate_limited"),
    idempotent=True,
)
async def reply_to_step(call: Call[ReplyToStepRequest, Query]) -> Answer:
    """Answer the workflow step that waits for the customer. An answer to any other step is refused."""
    identifier = await own_conversation(call)
    await require_writer(call)  # an answer may have no text, so that its commit would not check the block
    call.services.customer_limits.take_message(call.customer)
    command = AnswerStep(call.body.action_id, call.body.value)
    kept = call.keeping(_own_conversation_shown, identifier)
    return _own_conversation_shown(await call.services.actors.ask(call.project, identifier, command, kept))


@routes.add(
    "PUT",
    f"{_ONE}/network-logs",
    operation_id="replaceMyNetworkLogs",
    body=ReplaceNetworkLogsRequest,
    limit="network_logs_limit_bytes",
    answer=NOTHING,
    errors=("contact_blocked",),
)
async def replace_network_logs(call: Call[ReplaceNetworkLogsRequest, Query]) -> Answer:
    """Attach a snapshot of the page's network requests. Only agents see it."""
    identifier = await own_conversation(call)
    await require_writer(call)
    await call.services.actors.ask_where_shown(call.project, identifier, ReplaceNetworkLogs(call.raw))
    return NO_CONTENT


def _own(reader: Reader, call: Call[Any, Any]) -> tuple[Conversation, Contact]:
    """Return the conversation in the path with its contact. Raises NotFound as `own_conversation`."""
    identifier, _ = find_own(reader, call)
    return find(reader, call.project, identifier)


def conversation_shown(
    state: Conversation, contact: Contact, project_id: str, last: Message | None, show: AttachmentsView
) -> dict[str, Any]:
    """Return a stored conversation in the customer's view, with a message as its last one."""
    # A conversation that was split off may have no message of its own yet.
    own = state.split_from if last is not None and last.shown_in == state.id else None
    shown = None if last is None else message_view(last, own or state.id, show)
    return customer_conversation(conversation_view(state, contact, project_id), shown)


def _own_conversation_shown(receipt: Receipt) -> Mapping[str, Any]:
    return customer_conversation(receipt.conversation)


def _links(call: Call[Any, Any]) -> AttachmentsView:
    return partial(call.services.uploads.links.shown, now=call.services.clock())


def _check_asked(session: CustomerSession, given: VisitorProfile | None) -> None:
    """Raise Invalid for each field that the channel asks of visitors and that this one has left out."""
    if session.verified:
        return
    asked = [name for name in session.channel.visitors_ask if not name.endswith("?")]
    known = [each for each in (given, session.contact) if each is not None]
    missing = [name for name in asked if not any(getattr(each, name) for each in known)]
    if missing:
        message = "The channel asks for this before the first message."
        raise Invalid(*(Problem(f"/contact/{name}", "required", message) for name in missing))


def _tagged(call: Call[Any, Any], listed: Mapping[str, Any]) -> Answer:
    """Return a page with its entity tag, or 304 if the client has the same page.

    The tag covers what changes a conversation in the customer's view, and the day, because links to files expire.
    """
    seen = [(each["id"], each["sequence"], each["updatedAt"], _last_seen(each)) for each in listed["items"]]
    parts = [seen, listed["nextCursor"], call.services.clock() // _DAY_MS]
    tag = sha256(orjson.dumps(parts)).hexdigest()[:_TAG_LENGTH]
    return call.unless_known(listed, tag)


def _last_seen(shown: Mapping[str, Any]) -> tuple[str, str | None] | None:
    """Return what changes the newest message, which in a conversation that was split off is another one's."""
    last = shown.get("lastMessage")
    return last and (last["id"], last["redactedAt"])
