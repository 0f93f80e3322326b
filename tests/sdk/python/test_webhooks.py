"""Webhooks are verified by both kinds of signatures, and refused with the reason."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.message import Message
from typing import Any, Final

import pytest
from standardwebhooks import Webhook
from werkzeug.datastructures import Headers

from deskwire_sdk import AsyncDeskwire, WebhookVerificationError, webhooks
from tests.api.events.test_channels_agree import receiving
from tests.support.root import ROOT

VECTORS: Final[list[dict[str, Any]]] = json.loads((ROOT / "docs/signature-vectors.json").read_text())
SECRET: Final = "whsec_" + "Ab1" * 14 + "xy"
NOW: Final = 1_793_534_401
EVENT: Final[Any] = {"id": "evt_1", "type": "message.created", "mood": "new"}
BODY: Final = json.dumps(EVENT).encode()


def standard(body: bytes = BODY, secret: str = SECRET, **changes: str) -> dict[str, str]:
    """Return the headers that the published library of Standard Webhooks makes."""
    signed = Webhook(secret).sign("evt_1", datetime.fromtimestamp(NOW, UTC), body.decode())
    return {"webhook-id": "evt_1", "webhook-timestamp": str(NOW), "webhook-signature": signed, **changes}


async def test_a_delivery_of_the_service_is_verified(client: AsyncDeskwire) -> None:
    async with receiving() as receiver:
        endpoint = await client.webhooks.create(url=receiver.url)
        made = await client.conversations.create(contact={"userId": "u1"}, message={"text": "Grüße 👋"})
        await receiver.wait(2)
        both = [endpoint["secret"], (await client.webhooks.rotate_secret(endpoint["id"]))["secret"]]
        await client.messages.create(made["id"], text="rotated")
        await receiver.wait(3)
    for request in receiver.requests:
        for secret in (*both, both):
            if request is receiver.requests[-1] or both[0] in secret:
                event = webhooks.verify(request.body, request.headers, secret)
                assert event["type"] in ("conversation.created", "message.created")
    with pytest.raises(WebhookVerificationError, match="No signature matches"):
        webhooks.verify(receiver.requests[0].body, receiver.requests[0].headers, both[1])


async def test_a_delivery_is_verified_by_its_standard_headers_alone(client: AsyncDeskwire) -> None:
    async with receiving() as receiver:
        endpoint = await client.webhooks.create(url=receiver.url)
        await client.conversations.create(contact={"userId": "u1"})
        await receiver.wait(1)
    (request,) = receiver.requests
    headers = {name: value for name, value in request.headers.items() if name.startswith("webhook-")}
    if not headers:
        pytest.skip("this service sends only its own headers")
    assert webhooks.verify(request.body, headers, endpoint["secret"]) == json.loads(request.body)


@pytest.mark.parametrize("vector", VECTORS, ids=[each["name"] for each in VECTORS])
def test_the_published_vectors_have_the_published_verdict(vector: dict[str, Any]) -> None:
    arguments = vector["body"], {"service-signature": vector["header"]}, vector["secret"]
    if vector["valid"] and vector["body"]:
        assert webhooks.verify(*arguments, now=vector["now"]) == json.loads(vector["body"])
    else:
        with pytest.raises(WebhookVerificationError) as refused:
            webhooks.verify(*arguments, now=vector["now"])
        assert ("no JSON" in str(refused.value)) is vector["valid"]


@pytest.mark.parametrize("body", [BODY, BODY.decode(), bytearray(BODY)])
@pytest.mark.parametrize("secret", [SECRET, ["whsec_b2xk", SECRET], f"{SECRET}=="])
def test_signatures_of_the_standard_library_are_verified(body: Any, secret: Any) -> None:
    assert webhooks.verify(body, standard(), secret, now=NOW) == EVENT


def test_a_secret_of_43_characters_is_verified() -> None:
    assert webhooks.verify(BODY, standard(secret=SECRET[:-1]), SECRET[:-1], now=NOW) == EVENT


def of_http_server() -> Message:
    """Return headers as `http.server` has them, which are no mapping."""
    headers = Message()
    for name, value in standard().items():
        headers[name] = value
    return headers


@pytest.mark.parametrize(
    "headers",
    [
        {name.upper(): value for name, value in standard().items()},
        of_http_server(),
        Headers(standard()),
        list(standard().items()),
        [(name.encode(), value.encode()) for name, value in standard().items()],
        standard() | {"webhook-signature": "v2,abc v1,!! " + standard()["webhook-signature"]},
    ],
    ids=["upper case", "of http.server", "of Werkzeug", "pairs", "pairs of bytes", "several signatures"],
)
def test_headers_are_read_in_each_form(headers: Any) -> None:
    assert webhooks.verify(BODY, headers, SECRET, now=NOW) == EVENT


REFUSED: Final[dict[str, tuple[Any, ...]]] = {
    "neither": (BODY, {"Content-Type": "application/json"}, SECRET, NOW),
    "no webhook-id": (BODY, standard() | {"webhook-id": ""}, SECRET, NOW),
    "No signature matches": (BODY + b" ", standard(), SECRET, NOW),
    "another secret": (BODY, standard(), "whsec_b2xk", NOW),
    "There is no secret": (BODY, standard(), [" "], NOW),
    "301 s old": (BODY, standard(), SECRET, NOW + 301),
    "301 s in the future": (BODY, standard(), SECRET, NOW - 301),
    "no time in unix seconds": (BODY, standard() | {"webhook-timestamp": "\uff11"}, SECRET, NOW),
    "not `whsec_` with base64": (BODY, standard(), "whsec_äöü", NOW),
    "no JSON": (b"{", standard(b"{"), SECRET, NOW),
    "no object": (b"[]", standard(b"[]"), SECRET, NOW),
    "The t of": (BODY, {"Service-Signature": "v1=00"}, SECRET, NOW),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_refusal_says_why(reason: str) -> None:
    body, headers, secret, now = REFUSED[reason]
    with pytest.raises(WebhookVerificationError, match=reason):
        webhooks.verify(body, headers, secret, now=now)
