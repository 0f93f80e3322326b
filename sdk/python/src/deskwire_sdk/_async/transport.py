"""Sends requests, repeats those that failed for now, and raises errors for the others."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from itertools import count
from typing import Any, Final

import anyio
import httpx

from deskwire_sdk import _requests
from deskwire_sdk._requests import Request
from deskwire_sdk._retries import retry_delay
from deskwire_sdk._settings import Settings
from deskwire_sdk.errors import (
    ConnectionFailed,
    DeskwireError,
    InvalidResponse,
    Timeout,
    error_of,
)

_LOG: Final = logging.getLogger("deskwire_sdk")
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


class AsyncTransport:
    """Sends the requests of a client."""

    def __init__(self, http: httpx.AsyncClient, settings: Settings) -> None:
        self.http = http
        self.settings = settings

    async def json(self, request: Request) -> Any:
        """Send a request, and return the JSON of its response; None for a response without content.

        Raises:
            DeskwireError: no attempt succeeded, or the response is no JSON.
        """
        response = await self.send(request)
        if response.status_code == 204 or not response.content:
            return None
        try:
            return json.loads(response.content)
        except ValueError:
            excerpt = response.content[:200].decode("utf-8", "replace")
            raise InvalidResponse(f"{response.status_code} without JSON: {excerpt}") from None

    async def send(self, request: Request, *, stream: bool = False) -> httpx.Response:
        """Send a request until it succeeds, and return its response.

        Args:
            stream: leave the body unread; the caller closes the response.

        Raises:
            DeskwireError: the last failure.
        """
        key = request.key()
        if request.file is not None:  # an open file can be read once only
            file = await anyio.to_thread.run_sync(_requests.read_file, request.file)
            request = replace(request, file=file)
        for attempt in count():
            try:
                return await self._attempt(self._built(request, key), stream)
            except DeskwireError as failure:
                delay = retry_delay(request, failure, attempt, self.settings.max_retries)
                if delay is None:
                    raise
                _LOG.info("%s %s again in %.1f s: %s", request.method, request.path, delay, failure)
            await anyio.sleep(delay)
        raise AssertionError("count() does not end")

    async def _attempt(self, request: httpx.Request, stream: bool) -> httpx.Response:
        try:
            response = await self.http.send(request, stream=stream)
            if response.is_success:
                return response
            if stream:
                await response.aread()
        except httpx.LocalProtocolError:
            raise DeskwireError("HTTP does not allow a character in a header of this request.") from None
        except httpx.TimeoutException as error:
            raise Timeout(_reason(error, self.settings), sent=not isinstance(error, _NOT_SENT)) from error
        except httpx.RequestError as error:
            raise ConnectionFailed(
                _reason(error, self.settings), sent=not isinstance(error, _NOT_SENT)
            ) from error
        raise error_of(response.status_code, response.headers, response.content)

    def _built(self, request: Request, key: str | None) -> httpx.Request:
        headers = self.settings.headers(request, key)
        content: Any = None
        files: Any = None
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            content = _requests.encoded(request.body)
        elif request.lines is not None:
            headers["Content-Type"] = "application/x-ndjson"
            content = _requests.AsyncLines(request.lines)
        elif request.file is not None:
            files = {"file": request.file}
        return self.http.build_request(
            request.method,
            request.path if "://" in request.path else self.settings.base_url + request.path,
            params=request.params() or None,
            headers=headers,
            content=content,
            files=files,
            timeout=self.settings.timeout + request.wait,
        )


def _reason(error: httpx.RequestError, settings: Settings) -> str:
    return f"{settings.base_url}: {type(error).__name__}: {error}".rstrip(": ")
