"""The client of the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import httpx

from deskwire_sdk._async.downloads import AsyncDownload
from deskwire_sdk._async.resources import AsyncResources
from deskwire_sdk._async.transport import AsyncTransport
from deskwire_sdk._requests import Request
from deskwire_sdk._settings import MAX_RETRIES, TIMEOUT_S, settings


class AsyncDeskwire(AsyncResources):
    """An asynchronous client of the service, with an attribute for each resource.

    Keep one client for the whole process: it reuses its connections. It works under asyncio and Trio.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        base_url: str | None = None,
        project: str | None = None,
        timeout: float = TIMEOUT_S,
        max_retries: int = MAX_RETRIES,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        """Make a client; nothing is sent.

        Args:
            api_key: a server key, machine credential or access token; by default `DESKWIRE_API_KEY`.
            base_url: the address of the service; by default `DESKWIRE_URL`.
            project: the project's id, for calls with an access token.
            timeout: seconds for connecting, and for each part of a response.
            max_retries: how often a request is repeated that failed for now.
            http_client: a client of httpx with settings of your own, such as a proxy; close it yourself.

        Raises:
            DeskwireError: no address is given, or it is not one.
        """
        made = settings(api_key, base_url, project, timeout, max_retries)
        self._owned = http_client is None
        super().__init__(AsyncTransport(http_client or httpx.AsyncClient(), made))

    def with_options(
        self,
        *,
        api_key: str | None = None,
        project: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
    ) -> AsyncDeskwire:
        """Return a client with other settings that shares the connections of this one; only this one is closed."""
        before = self._transport.settings
        other = AsyncDeskwire(base_url=before.base_url, http_client=self._transport.http)
        other._transport.settings = replace(
            before,
            api_key=api_key or before.api_key,
            project=project or before.project,
            timeout=before.timeout if timeout is None else timeout,
            max_retries=before.max_retries if max_retries is None else max_retries,
        )
        return other

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Send a request that the SDK has no method for, such as one of a newer service; return its JSON.

        Args:
            path: with encoded ids, such as `/v3/s2s/project`.
            idempotency_key: makes a POST safe to repeat, if the call takes one.

        Raises:
            DeskwireError: the request failed.
        """
        idempotent = idempotency_key is not None
        return await self._transport.json(
            Request(
                method.upper(),
                path,
                query or {},
                body=body,
                project=True,
                idempotent=idempotent,
                idempotency_key=idempotency_key,
            )
        )

    def download(self, url: str) -> AsyncDownload:
        """Return the file at a signed URL, such as the `url` of an attachment; no credential is sent there."""
        return AsyncDownload(self._transport, Request("GET", url, credential=False))

    async def aclose(self) -> None:
        """Close the connections."""
        if self._owned:
            await self._transport.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
