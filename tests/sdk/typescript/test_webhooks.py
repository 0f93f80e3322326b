"""Webhook deliveries that the TypeScript SDK verifies."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from deskwire.http.description.openapi.document import document
from tests.sdk.typescript.jobs_run import Jobs
from tests.support.root import ROOT
from tests.support.sockets.server_process import Server

VECTORS: list[dict[str, Any]] = json.loads((ROOT / "docs/signature-vectors.json").read_text())
SECRET = "whsec_" + base64.b64encode(bytes(range(24))).decode()
BODY = b'{"id": "evt_1", "type": "message.created"}'
NOW = 1_793_534_403


def request(
    body: bytes, headers: Mapping[str, str], *secrets: str, now: int | None = NOW, library: bool = False
) -> str:
    """Return a line for the job."""
    encoded = base64.b64encode(body).decode()
    given = {"body": encoded, "headers": headers, "secrets": secrets, "nowS": now, "library": library}
    return json.dumps(given) + "\n"


def standard(body: bytes, secret: str = SECRET, now: int = NOW) -> dict[str, str]:
    """Return the headers that Standard Webhooks 1.0 demands."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = hmac.digest(key, f"dlv_1.{now}.".encode() + body, hashlib.sha256)
    signature = "v1," + base64.b64encode(signed).decode()
    return {"webhook-id": "dlv_1", "webhook-timestamp": str(now), "webhook-signature": signature}


async def test_each_published_vector_is_judged_as_it_says(jobs: Jobs) -> None:
    tried = [(vector, {"Service-Signature": vector["header"]}) for vector in VECTORS]
    tried += [(vector, vector["standard"]) for vector in VECTORS if "standard" in vector]
    lines = [
        request(vector["body"].encode(), headers, vector["secret"], now=vector["now"])
        for vector, headers in tried
    ]
    seen = await jobs.run("webhook", {}, given="".join(lines))
    for (vector, headers), result in zip(tried, seen, strict=True):
        genuine = "type" in result or result["refused"] == "The signature matches, but the body is not JSON."
        assert genuine == vector["valid"], (vector["name"], headers, result)


async def test_signatures_of_standard_webhooks_are_accepted(jobs: Jobs) -> None:
    several = standard(BODY)
    several["webhook-signature"] = f"v1a,x v1,{'A' * 44} {several['webhook-signature']}"
    lines = [
        request(BODY, standard(BODY), SECRET),
        request(BODY, {name.title(): [value] for name, value in standard(BODY).items()}, SECRET),  # type: ignore[misc]
        request(BODY, standard(BODY), "whsec_other", SECRET),
        request(BODY, several, SECRET),
    ]
    assert await jobs.run("webhook", {}, given="".join(lines)) == [{"type": "message.created"}] * 4


async def test_a_refusal_says_why(jobs: Jobs) -> None:
    good = {"service-signature": f"t={NOW},v1={'0' * 64}"}
    lines = [
        request(BODY, {}, SECRET),
        request(BODY, good, SECRET),
        request(BODY, standard(BODY), SECRET, now=NOW + 301),
        request(BODY, standard(BODY), SECRET, now=NOW - 400),
        request(BODY, {"service-signature": "v1=00"}, SECRET),
        request(BODY + b" ", standard(BODY), SECRET),
        request(BODY, standard(BODY)),
        request(BODY, standard(BODY), " "),
    ]
    seen = await jobs.run("webhook", {}, given="".join(lines))
    assert [each["refused"].partition(":")[0] for each in seen] == [
        "The request has neither Service-Signature nor webhook-signature",
        "No signature matches",
        "The signature is 301 s old, more than the 300 s allowed",
        "The signature is 400 s in the future, more than the 300 s allowed",
        "The signature has no time.",
        "No signature matches",
        "No secret was given.",
        "No secret was given.",
    ]


async def test_a_delivery_of_the_service_is_verified(
    jobs: Jobs, server: Server, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    environ = {"BASE": server.url, "KEY": server.demo()["serverKey"]}
    async with jobs.following("receiver", environ, tmp_path) as receiver:
        await receiver.until(1, "listening")
        body = {"contact": {"userId": "u1"}, "message": {"text": "Grüße 👋"}}
        assert (await api.post("/s2s/conversations", json=body)).status_code == 200
        (line,) = await receiver.until(1, "type")
    seen = json.loads(receiver.with_words('{"type"')[0])
    assert line.endswith("}")
    headers = [each["name"] for each in document()["webhooks"]["message.created"]["post"]["parameters"]]
    # Its own library and the SDK accept the headers of Standard Webhooks alone, where deliveries have them.
    standard = True if "webhook-signature" in headers else None
    wanted = {"type": "message.created", "standard": standard, "library": standard, "altered": False}
    assert seen == wanted


@pytest.mark.parametrize("secret", ["whsec_4fzCwFMCBvyqXbTV9vXSKlcJTUGcRh3n5WtGWTiMpkL"])
async def test_a_secret_that_is_no_base64_is_skipped_for_standard_webhooks(jobs: Jobs, secret: str) -> None:
    (seen,) = await jobs.run("webhook", {}, given=request(BODY, standard(BODY), secret + "é"))
    assert seen["refused"].startswith("No signature matches")
