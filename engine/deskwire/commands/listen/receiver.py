"""The developer's receiver: its URL, and headers to send with each delivery."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import trio

from deskwire.engine.core.http1 import Header
from deskwire.engine.webhooks.http.address import AddressPolicy
from deskwire.engine.webhooks.http.connectors import Connector
from deskwire.engine.webhooks.url import WebhookUrl, url_problems

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 5.6.2
_VALUE: Final = re.compile(r"[\t -~]*")
_OURS: Final = "service-"
_TAKEN: Final = frozenset(
    {"content-type", "user-agent", "webhook-id", "webhook-signature", "webhook-timestamp"}
)
_FRAMING: Final = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "proxy-connection"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that frame and route a request and can't be replaced (RFC 9110 7.6.1, 8.6)."""


class BadHeaders(Exception):
    """Headers that can't be sent. The text has one line for each problem, without values, which may be secrets."""


def parse_headers(lines: Sequence[str]) -> tuple[Header, ...]:
    """Return the headers of `Name: value` lines. Raises BadHeaders with all problems."""
    if problems := [problem for each in enumerate(lines, 1) for problem in _problems(*each)]:
        raise BadHeaders("\n".join(problems))
    pairs = (each.partition(":") for each in lines)
    return tuple((name.encode("ascii"), value.strip().encode("ascii")) for name, _, value in pairs)


def _problems(number: int, given: str) -> Iterator[str]:
    name, colon, value = given.partition(":")
    if not colon:
        yield f"Header {number} has no colon; write it as 'Name: value'."
        return
    if not _NAME.fullmatch(name):
        yield f"Header {number}: {name!r} is not a header name."
    elif name.lower().startswith(_OURS) or name.lower() in _TAKEN:
        yield f"Header {number}: {name} is set by the service and can't be changed."
    elif name.lower() in _FRAMING:
        yield f"Header {number}: {name} belongs to the connection and can't be set."
    if not _VALUE.fullmatch(value):
        yield f"Header {number}: the value of {name!r} must be printable ASCII."


class RouteWithHeaders:
    """A route that adds headers to each request; see `Connector`."""

    def __init__(self, route: Connector, headers: tuple[Header, ...]) -> None:
        self._route = route
        self._headers = headers

    @property
    def stage(self) -> str:
        """See `Connector.stage`."""
        return self._route.stage

    async def connect(self, target: WebhookUrl) -> trio.abc.Stream:
        """See `Connector.connect`."""
        return await self._route.connect(target)

    def request_target(self, target: WebhookUrl) -> tuple[bytes, tuple[Header, ...]]:
        """See `Connector.request_target`."""
        line, headers = self._route.request_target(target)
        return line, (*headers, *self._headers)


_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PORT: Final = re.compile(r":?(\d{1,5}(?:[/?].*)?)")


class BadReceiverUrl(Exception):
    """A URL that can't be posted to; the text names every problem."""


def receiver_url(target: str) -> str:
    """Return the URL of a target: `localhost:3000/hook` and a port alone mean http on this machine.

    Any address and port are allowed, because the developer chooses them. Raises BadReceiverUrl.
    """
    url = target
    if _SCHEME.match(target) is None:
        port = _PORT.fullmatch(target)
        url = f"http://localhost:{port[1]}" if port else f"http://{target}"
    problems = [
        each for each in url_problems(url, AddressPolicy(allow_private=True)) if each.code != "url_port"
    ]
    if problems:
        raise BadReceiverUrl(" ".join(each.message for each in problems))
    return url
