"""The published signature vectors, through our signer, the example verifier, and a published one.

The verifiers of other languages are tried with them in `tests/examples`.
"""

from __future__ import annotations

import json
import runpy
from datetime import UTC, datetime
from typing import Any

import pytest
import standardwebhooks
import stripe

from deskwire.engine.webhooks.signature import sign, standard_signature
from tests.support.root import ROOT

DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
VECTORS: list[dict[str, Any]] = json.loads((DOCS / "signature-vectors.json").read_text())
IDS = [vector["name"] for vector in VECTORS]


def _signatures(header: str) -> list[str]:
    return [part.removeprefix("v1=") for part in header.split(",") if part.startswith("v1=")]


def test_there_is_a_vector_for_each_mistake_that_receivers_make() -> None:
    wanted = {"good", "rotated secret", "altered body", "stale t", "base64-decoded secret"}
    assert wanted <= set(IDS)
    assert len(set(IDS)) == len(IDS)
    assert any(len(_signatures(vector["header"])) > 1 for vector in VECTORS)


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_our_signer_makes_the_good_signatures_and_none_of_the_bad_ones(vector: dict[str, Any]) -> None:
    made = sign(vector["secret"], vector["t"], vector["body"].encode())
    fresh = abs(vector["now"] - vector["t"]) <= 300 and f"t={vector['t']}" in vector["header"]
    assert (made in _signatures(vector["header"]) and fresh) == vector["valid"]


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_the_python_example_gives_the_published_verdict(vector: dict[str, Any]) -> None:
    verify = runpy.run_path(str(EXAMPLES / "verify.py"))["verify"]
    body = vector["body"].encode()
    assert verify(vector["secret"], vector["header"], body, vector["now"]) is vector["valid"]


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_the_published_verifier_gives_the_same_verdict(
    vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: float(vector["now"]))
    arguments = vector["body"], vector["header"], vector["secret"], 300
    if vector["valid"]:
        assert stripe.WebhookSignature.verify_header(*arguments)
    else:
        with pytest.raises(stripe.SignatureVerificationError):
            stripe.WebhookSignature.verify_header(*arguments)


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_our_signer_makes_the_good_standard_signatures_and_none_of_the_bad_ones(
    vector: dict[str, Any],
) -> None:
    headers, t = vector["standard"], vector["t"]
    made = standard_signature([vector["secret"]], headers.get("webhook-id", ""), t, vector["body"].encode())
    fresh = abs(vector["now"] - t) <= 300 and headers.get("webhook-timestamp") == str(t)
    signatures = headers.get("webhook-signature", "").split(" ")
    assert (made in signatures and fresh) == vector["valid"]


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_the_published_verifier_of_standard_webhooks_gives_the_same_verdict(
    vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class FixedClock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> FixedClock:
            return cls.fromtimestamp(vector["now"], UTC)

    monkeypatch.setattr("standardwebhooks.webhooks.datetime", FixedClock)
    verifier = standardwebhooks.Webhook(vector["secret"])
    if vector["valid"]:
        verifier.verify(vector["body"], vector["standard"], json_parse=False)
    else:
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            verifier.verify(vector["body"], vector["standard"], json_parse=False)
