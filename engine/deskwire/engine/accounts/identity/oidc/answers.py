"""Answers of an OpenID provider over HTTP: bounded in size and time, JSON only, and no redirects.

The provider's pages are written by others, so an answer may be slow, huge, endless or a redirect to another host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import httpx
import orjson
import trio

ANSWER_TIMEOUT_S: Final = 5.0
"""Timeout of a request, from the DNS lookup to the last byte."""
ANSWER_BYTES_MAX: Final = 256 * 1024
_OK: Final = 200
_REFUSED: Final = frozenset({400, 401, 403})


class ProviderUnreachable(Exception):
    """The provider gives no usable answer now. The text gives the reason, without text from the answer."""


class ProviderRefusal(Exception):
    """The provider refuses a request. The text is its error code, such as `invalid_grant`."""


async def answer_of(client: httpx.AsyncClient, method: str, url: str, **request: Any) -> Mapping[str, Any]:
    """Return the JSON object with which the provider answers.

    Raises ProviderUnreachable, or ProviderRefusal for an error of OAuth (RFC 6749 5.2).
    """
    # `identity` because the size limit counts bytes on the wire: a small compressed response could expand to a large one.
    headers = {"Accept": "application/json", "Accept-Encoding": "identity", **request.pop("headers", {})}
    try:
        with trio.fail_after(ANSWER_TIMEOUT_S):
            async with client.stream(
                method, url, headers=headers, follow_redirects=False, **request
            ) as response:
                status = response.status_code
                content = await _content_of(response)
    except trio.TooSlowError:
        raise ProviderUnreachable(f"it does not answer within {ANSWER_TIMEOUT_S:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ProviderUnreachable(str(error) or type(error).__name__) from error
    document = _object(content)
    if status in _REFUSED and document is not None and isinstance(document.get("error"), str):
        raise ProviderRefusal(_printable(document["error"]))
    if status != _OK:
        raise ProviderUnreachable(f"it answers with the status {status}")
    if document is None:
        raise ProviderUnreachable("its answer is not a JSON object")
    return document


async def _content_of(response: httpx.Response) -> bytes:
    """Return the content of an answer. Raises ProviderUnreachable if it is too large."""
    content = bytearray()
    with trio.CancelScope() as reading:
        async for chunk in response.aiter_raw():
            content += chunk
            if len(content) > ANSWER_BYTES_MAX:
                reading.cancel()  # ends the generators inside; leaving the loop would not
    if len(content) > ANSWER_BYTES_MAX:
        raise ProviderUnreachable(f"it sends more than {ANSWER_BYTES_MAX:,} bytes")
    return bytes(content)


_SHOWN_MAX: Final = 80


def _printable(code: str) -> str:
    """Return an error code for the log, shortened, without characters that could forge a line."""
    return "".join(each if each.isascii() and each.isprintable() else "?" for each in code[:_SHOWN_MAX])


def _object(content: bytes) -> Mapping[str, Any] | None:
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None
