"""Verifies webhook requests: by `Service-Signature`, or by the headers of Standard Webhooks."""

from __future__ import annotations

import hmac
import json
import time
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, cast

from deskwire_sdk import types
from deskwire_sdk.errors import WebhookVerificationError

__all__ = ["TOLERANCE_S", "Headers", "WebhookVerificationError", "verify"]

TOLERANCE_S: Final = 300.0
_PREFIX: Final = "whsec_"
_TIME_DIGITS_MAX: Final = 15


class HasItems(Protocol):
    """Headers as frameworks have them; `http.server` and Werkzeug have no `Mapping`."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Return names and values."""


Headers = HasItems | Iterable[tuple[str | bytes, str | bytes]]
"""The headers of a request: an object with `items`, such as a dict, or pairs as in ASGI. Case does not matter."""


def verify(
    body: bytes | str,
    headers: Headers,
    secret: str | Sequence[str],
    *,
    tolerance: float = TOLERANCE_S,
    now: float | None = None,
) -> types.WebhookEvent:
    """Return the event of a webhook request whose signature is right.

    Args:
        body: the body as received; JSON that was parsed and written again has another signature.
        headers: the headers of the request.
        secret: the endpoint's secret, with `whsec_`; while you rotate it, both.
        tolerance: seconds that the time of the signature may differ from now.
        now: the present time in unix seconds, for tests.

    Raises:
        WebhookVerificationError: the request is not authentic, or too old; the text says why.
    """
    content = body.encode() if isinstance(body, str) else bytes(body)
    secrets = [each.strip() for each in ([secret] if isinstance(secret, str) else secret) if each.strip()]
    if not secrets:
        raise WebhookVerificationError("There is no secret to verify with.")
    named = {_plain(name).lower(): _plain(value) for name, value in _pairs(headers)}
    if "service-signature" in named:
        at, matches = _ours(named["service-signature"], content, secrets)
    elif "webhook-signature" in named:
        at, matches = _standard(named, content, secrets)
    else:
        raise WebhookVerificationError("The request has neither Service-Signature nor webhook-signature.")
    if not matches:
        raise WebhookVerificationError("No signature matches: another secret, or the body was changed.")
    age = (time.time() if now is None else now) - at
    if abs(age) > tolerance:
        when = "old" if age > 0 else "in the future"
        raise WebhookVerificationError(
            f"The signature is {abs(age):.0f} s {when}; {tolerance:.0f} are allowed."
        )
    return _event(content)


def _ours(header: str, body: bytes, secrets: Sequence[str]) -> tuple[int, bool]:
    """Return the time of `Service-Signature`, and whether one of its signatures is right."""
    pairs = [part.strip().partition("=") for part in header.split(",")]
    at = next((value for name, _, value in pairs if name == "t"), "")
    given = [value.encode() for name, _, value in pairs if name == "v1"]
    signed = at.encode() + b"." + body
    right = [hmac.digest(each.encode(), signed, "sha256").hex().encode() for each in secrets]
    return _seconds(at, "t of Service-Signature"), _matches(given, right)


def _standard(headers: Mapping[str, str], body: bytes, secrets: Sequence[str]) -> tuple[int, bool]:
    """Return the time of Standard Webhooks' headers, and whether one of the signatures is right.

    Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
    """
    missing = [name for name in ("webhook-id", "webhook-timestamp") if not headers.get(name)]
    if missing:
        raise WebhookVerificationError(f"The request has no {missing[0]}.")
    at = headers["webhook-timestamp"]
    signed = f"{headers['webhook-id']}.{at}.".encode() + body
    pairs = [part.partition(",") for part in headers["webhook-signature"].split()]
    given = [value.encode() for version, _, value in pairs if version == "v1"]
    right = [b64encode(hmac.digest(_key(each), signed, "sha256")) for each in secrets]
    return _seconds(at, "webhook-timestamp"), _matches(given, right)


def _key(secret: str) -> bytes:
    """Return the key that a secret stands for: the part after `whsec_`, decoded from base64."""
    digits = secret.removeprefix(_PREFIX).rstrip("=")
    try:
        return b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except (NotBase64, ValueError):
        raise WebhookVerificationError("The secret is not `whsec_` with base64.") from None


def _matches(given: Sequence[bytes], right: Sequence[bytes]) -> bool:
    """Return whether a given signature is right, in a time that does not depend on their content."""
    return any([hmac.compare_digest(ours, theirs) for ours in right for theirs in given])  # noqa: C419  # compares all


def _seconds(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _TIME_DIGITS_MAX):
        raise WebhookVerificationError(f"The {name} is no time in unix seconds.")
    return int(text)


def _event(body: bytes) -> types.WebhookEvent:
    try:
        found = json.loads(body)
    except ValueError:
        raise WebhookVerificationError("The body is signed, and is no JSON.") from None
    if not isinstance(found, dict):
        raise WebhookVerificationError("The body is signed, and is no object.")
    return cast(types.WebhookEvent, found)


def _pairs(headers: Headers) -> Iterable[tuple[str | bytes, str | bytes]]:
    items = getattr(headers, "items", None)
    return cast(Iterable[tuple[str | bytes, str | bytes]], headers if items is None else items())


def _plain(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
