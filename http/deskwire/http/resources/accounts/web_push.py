"""Web push of the signed-in user: the subscription of the session's browser, and the log of pushes."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from deskwire.engine.accounts.sessions import BrowserSession
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Invalid, Problem, Unauthenticated
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Transaction
from deskwire.engine.push.encryption import AUTH_BYTES, browser_key, from_base64url
from deskwire.engine.push.endpoint import PushEndpoint
from deskwire.engine.push.ports import PushSubscription, push_view
from deskwire.engine.webhooks.url import URL_LENGTH_MAX
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.pagination import page
from deskwire.http.api.routing import MEDIUM, SIGNED_IN, Routes, in_session
from deskwire.http.resources.accounts import users
from deskwire.http.resources.accounts.requests import AccountList
from deskwire.http.schemas import web_push as shapes
from deskwire.http.schemas.base import page_of

routes = Routes(users.routes.tag, SIGNED_IN)

_SUBSCRIPTION: Final = "/users/me/push-subscription"
_PUSHES: Final = "/users/me/pushes"
_NEWEST: Final = (1 << 63) - 1
_OWN: Final = "A subscription concerns the browser of its user, sends nothing but encrypted notifications, and ends with the session."


def _point(text: str) -> str:
    browser_key(from_base64url(text))
    return text


def _auth(text: str) -> str:
    if len(from_base64url(text)) != AUTH_BYTES:
        raise ValueError(f"it has not {AUTH_BYTES} bytes")
    return text


def _readable(check: Any, message: str) -> AfterValidator:
    def checked(text: str) -> str:
        try:
            return str(check(text))
        except ValueError:
            raise ValueError(message) from None

    return AfterValidator(checked)


class PushKeys(Body):
    """The keys of the browser, in base64url: the public key `p256dh`, a point of P-256, and the secret `auth`."""

    p256dh: Annotated[
        str,
        _readable(_point, "This is not a public key of P-256 in base64url (65 bytes, uncompressed)."),
        Field(
            alias="p256dh",  # not p256Dh
            max_length=100,
            examples=[
                "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
            ],
        ),
    ]
    auth: Annotated[
        str,
        _readable(_auth, "This is not a secret of 16 bytes in base64url."),
        Field(max_length=40, examples=["BTBZMqHH6r4Tts7J_aSIgg"]),
    ]


class PutPushSubscriptionRequest(Body):
    """The subscription of the browser, as `PushSubscription.toJSON()` has it, without `expirationTime`."""

    endpoint: Annotated[
        str,
        Field(
            max_length=URL_LENGTH_MAX,
            examples=["https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV"],
        ),
    ]
    keys: PushKeys


@routes.add(
    "GET", _SUBSCRIPTION, in_session(SIGNED_IN), operation_id="getPushSubscription", answer=shapes.PushState
)
async def get_subscription(call: Call[Body, Query]) -> Answer:
    """Fetch the key with which your browser subscribes to push notifications, and whether this session has a subscription."""
    session_id = _session(call).id
    found = await call.services.store.read(lambda reader: reader.push_subscription(session_id))
    return await _state(call, found)


@routes.add(
    "PUT",
    _SUBSCRIPTION,
    in_session(SIGNED_IN),
    operation_id="putPushSubscription",
    body=PutPushSubscriptionRequest,
    answer=shapes.PushState,
    limit=MEDIUM,
    unrecorded=_OWN,
)
async def put_subscription(call: Call[PutPushSubscriptionRequest, Query]) -> Answer:
    """Have this session's browser notified when the desk is closed, by the push service at `endpoint`.

    It replaces the session's earlier subscription, and that of another session of the same browser. It ends with the session. The
    address of the endpoint must be public, like that of a webhook.
    """
    body, services = call.body, call.services
    problems = await services.webhooks.check_url(body.endpoint)
    if problems:
        raise Invalid(*map(_at_endpoint, problems))
    endpoint = PushEndpoint(body.endpoint, from_base64url(body.keys.p256dh), from_base64url(body.keys.auth))
    sealed, session_id, user = endpoint.sealed(services.push.sealing), _session(call).id, call.user.rowid
    now = services.clock()

    def put(tx: Transaction) -> PushSubscription | None:
        session = tx.session_with(session_id)
        if session is None:
            raise Unauthenticated("The session has ended; sign in again.", code="session_ended")
        tx.put_push_subscription(PushSubscription(session.rowid, user, endpoint.hash, sealed, now))
        return tx.push_subscription(session_id)

    return await _state(call, await services.store.write(put))


@routes.add(
    "DELETE",
    _SUBSCRIPTION,
    in_session(SIGNED_IN),
    operation_id="deletePushSubscription",
    answer=shapes.PushState,
    unrecorded=_OWN,
)
async def delete_subscription(call: Call[Body, Query]) -> Answer:
    """End the push notifications of this session's browser. Pushes that wait for it are not sent."""
    session_id = _session(call).id

    def delete(tx: Transaction) -> None:
        found = tx.push_subscription(session_id)
        if found is not None:
            tx.delete_push_subscription(found.rowid)

    await call.services.store.write(delete)
    return await _state(call, None)


@routes.add("GET", _PUSHES, operation_id="listPushes", query=AccountList, answer=page_of(shapes.Push))
async def list_pushes(call: Call[Body, AccountList]) -> Answer:
    """List your push notifications of the last 7 days, newest first, each with the reason why it was sent or not."""
    query, user = call.query, call.user.rowid
    before = _NEWEST if query.row is None else query.row
    found = await call.services.store.read(lambda reader: reader.own_pushes(user, before, query.rows))
    return page(query, found, lambda each: push_view(*each), lambda each: each[0].rowid)


async def _state(call: Call[Any, Any], subscription: PushSubscription | None) -> Answer:
    return subscription_view(subscription, await call.services.push.key.public())


def subscription_view(subscription: PushSubscription | None, public_key: str) -> dict[str, Any]:
    """Return the state of web push of a session."""
    since = None if subscription is None else {"createdAt": iso(subscription.created_at)}
    return {"publicKey": public_key, "subscription": since}


def _session(call: Call[Any, Any]) -> BrowserSession:
    session = call.access.session
    assert session is not None, "the route requires one"
    return session


def _at_endpoint(problem: Problem) -> Problem:
    return replace(problem, pointer="/endpoint")
