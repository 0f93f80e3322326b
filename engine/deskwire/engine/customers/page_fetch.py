"""Fetches of customers' pages for the check of a site, under the address rules of webhooks.

Each redirect is checked like the first URL. A page can send at most PAGE_BYTES_MAX bytes and FETCH_TIMEOUT_S seconds count from
the first lookup to the last byte, so a hostile page costs one slot for some seconds.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Sequence
from typing import Final
from urllib.parse import urljoin

import trio
from msgspec import Struct

from deskwire.engine.core.build import version
from deskwire.engine.core.http1 import ResponseHead
from deskwire.engine.webhooks.http.address import AddressPolicy
from deskwire.engine.webhooks.http.connection import HttpConnection, header_lines, start_tls
from deskwire.engine.webhooks.http.connectors import Connector
from deskwire.engine.webhooks.http.failure import WIRE_ERRORS, describe_error
from deskwire.engine.webhooks.url import WebhookUrl, url_problems

FETCH_TIMEOUT_S: Final = 10.0
PAGE_BYTES_MAX: Final = 512 * 1024
REDIRECTS_MAX: Final = 5
_FETCHES_MAX: Final = 4  # at a time, for all projects: each holds a page in memory
_QUEUE_TIMEOUT_S: Final = 10.0
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS
_ENCODINGS: Final = frozenset({b"gzip", b"x-gzip", b"deflate"})
_ASKED: Final = (
    (b"Accept", b"text/html,application/xhtml+xml;q=0.9,*/*;q=0.1"),
    (b"Accept-Encoding", b"gzip"),
    (b"User-Agent", f"Mozilla/5.0 (compatible; Deskwire/{version()}; site check)".encode()),
    (b"Connection", b"close"),
)


class PageUnavailable(Exception):
    """A page could not be fetched; the message is the reason."""


class FetchedPage(Struct, frozen=True):
    """A page after its redirects.

    Args:
        url: where the last redirect led.
        headers: names in lower case.
        body: the first PAGE_BYTES_MAX bytes, decompressed.
    """

    url: str
    status: int
    headers: Sequence[tuple[str, str]]
    body: str

    def values(self, name: str) -> list[str]:
        """Return the values of a header, named in lower case."""
        return [value for header, value in self.headers if header == name]


class PageFetcher:
    """Fetches pages, a few at a time.

    Args:
        policy: the addresses that pages may have.
        connector: makes connections under this policy.
        ssl_context: verifies certificates of pages.
    """

    def __init__(self, policy: AddressPolicy, connector: Connector, ssl_context: ssl.SSLContext) -> None:
        self._policy = policy
        self._connector = connector
        self._ssl_context = ssl_context
        self._slots = trio.CapacityLimiter(_FETCHES_MAX)

    async def fetch(self, url: str) -> FetchedPage:
        """Return the page at a URL that `url_problems` has accepted. Raises PageUnavailable."""
        with trio.move_on_after(_QUEUE_TIMEOUT_S) as waiting:
            await self._slots.acquire()
        if waiting.cancelled_caught:
            raise PageUnavailable("too many other pages are being checked; try again in a minute")
        try:
            with trio.move_on_after(FETCH_TIMEOUT_S) as scope:
                return await self._follow(url)
        except (*WIRE_ERRORS, zlib.error) as error:
            raise PageUnavailable(_reason(error)) from error
        finally:
            self._slots.release()
        assert scope.cancelled_caught, "only the timeout leaves the block"
        raise PageUnavailable(f"the page was not complete within {FETCH_TIMEOUT_S:g} s")

    async def _follow(self, url: str) -> FetchedPage:
        for _ in range(REDIRECTS_MAX + 1):
            page = await self._get(url)
            location = page.values("location")
            if page.status not in _REDIRECTS or not location:
                return page
            try:
                url = urljoin(url, location[0]).partition("#")[0]
            except ValueError as error:
                raise PageUnavailable(f"it redirects to an invalid address: {error}") from error
            if problems := url_problems(url, self._policy):
                raise PageUnavailable(
                    f"it redirects to {url[:200]}, which can't be fetched: {problems[0].message}"
                )
        raise PageUnavailable(f"it redirects more than {REDIRECTS_MAX} times")

    async def _get(self, url: str) -> FetchedPage:
        target = WebhookUrl.parse(url)
        form, extra = self._connector.request_target(target)
        fields = ((b"Host", target.authority), *_ASKED, *extra)
        request = header_lines(b"GET %s HTTP/1.1" % form, *[b"%s: %s" % field for field in fields], b"")
        stream = await self._connector.connect(target)
        if target.tls:
            stream = await start_tls(stream, self._ssl_context, target.host)
        connection = HttpConnection(stream, body_wire_max=PAGE_BYTES_MAX)
        try:
            await connection.send(b"GET", request)
            head = await connection.head()
            body = b"" if head.status in _REDIRECTS else await _body(connection, head)
        finally:
            connection.close()
        headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in head.headers]
        return FetchedPage(url, head.status, headers, body.decode("utf-8", "replace"))


async def _body(connection: HttpConnection, head: ResponseHead) -> bytes:
    body = b""
    while len(body) < PAGE_BYTES_MAX and (chunk := await connection.next_chunk()):
        body += chunk
    encoding = next((value for name, value in head.headers if name.lower() == b"content-encoding"), b"")
    if encoding.strip().lower() not in _ENCODINGS:
        return body[:PAGE_BYTES_MAX]
    return zlib.decompressobj(_GZIP_OR_ZLIB).decompress(body, PAGE_BYTES_MAX)


def _reason(error: Exception) -> str:
    return "its compressed content is damaged" if isinstance(error, zlib.error) else describe_error(error)
