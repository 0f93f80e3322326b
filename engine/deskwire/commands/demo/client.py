"""The API client of the demo: it retries what the service puts off, and raises for everything else."""

from __future__ import annotations

import math
import ssl
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import httpx
import orjson
import trio

from deskwire.commands.api_client.service import problem_in_words, reason_in_words

_ATTEMPTS_MAX: Final = 20
_RETRY_DELAY_MIN_S: Final = 0.2
_RETRY_DELAY_MAX_S: Final = 10.0  # even if `Retry-After` asks for more
_RETRIED: Final = frozenset({429, 503})


class DemoError(Exception):
    """The demo can't start or continue; the text gives the reason and, if possible, the remedy."""


class ApiClient:
    """Calls with one credential; an async context manager that closes its connections.

    Args:
        base_url: scheme, host and port, without `/v3`.
        credential: a token or a server key; "" for calls without one.
        project: the project's id, for a token.
        trust: verifies the service's certificate; None for the public authorities.
        connections: open at once; further calls wait.
    """

    def __init__(
        self,
        base_url: str,
        credential: str = "",
        project: str | None = None,
        *,
        trust: ssl.SSLContext | None = None,
        connections: int = 100,
    ) -> None:
        self.base_url: Final = base_url
        self.trust: Final = trust or httpx.create_ssl_context()  # heeds SSL_CERT_FILE
        self.retried = 0
        """Requests that were answered with 429 or 503 and sent again."""
        headers = {"Authorization": f"Bearer {credential}"} if credential else {}
        self._client = httpx.AsyncClient(
            base_url=f"{base_url}/v3",
            headers=headers | ({} if project is None else {"project": project}),
            timeout=httpx.Timeout(60.0, pool=None),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            verify=self.trust,
            trust_env=False,  # a proxy would distort the times that the demo measures
        )

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def get(self, path: str, **params: str) -> Any:
        """Return the response to a GET. Raises DemoError."""
        return orjson.loads(await self.get_bytes(path, **params))

    async def get_bytes(self, path: str, **params: str) -> bytes:
        """Return the raw response to a GET. Raises DemoError."""
        return (await self._send("GET", path, params=params)).content

    async def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the response to a request with a JSON body. Raises DemoError."""
        return _json(await self._send(method, path, json=dict(body or {})))

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the response to a POST. Raises DemoError."""
        return await self.call("POST", path, body)

    async def upload(self, name: str, content: bytes, media_type: str) -> str:
        """Send a file; return its id. Raises DemoError."""
        response = await self._send("POST", "/uploads", files={"file": (name, content, media_type)})
        return str(_json(response)["id"])

    async def send_lines(self, path: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Post records as lines of JSON. Raises DemoError."""
        content = b"".join(orjson.dumps(record) + b"\n" for record in records)
        await self._send("POST", path, content=content, headers={"Content-Type": "application/x-ndjson"})

    async def _send(self, method: str, path: str, **parts: Any) -> httpx.Response:
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                response = await self._client.request(method, path, **parts)
            except httpx.TransportError as error:
                raise DemoError(f"{reason_in_words(error)} ({method} {path})") from error
            if response.status_code not in _RETRIED or attempt == _ATTEMPTS_MAX:
                break
            self.retried += 1
            await trio.sleep(_retry_delay_s(response.headers.get("Retry-After", "")))
        if not response.is_success:
            words = problem_in_words(response.status_code, _json(response))
            raise DemoError(f"{words} ({method} {path})")
        return response


def _json(response: httpx.Response) -> Any:
    try:
        return orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return None


def _retry_delay_s(retry_after: str) -> float:
    try:
        asked_s = float(retry_after)
    except ValueError:
        return 1.0
    return min(max(asked_s, _RETRY_DELAY_MIN_S), _RETRY_DELAY_MAX_S) if math.isfinite(asked_s) else 1.0
