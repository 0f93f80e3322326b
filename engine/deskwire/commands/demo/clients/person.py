"""A caller of the API with one credential, for what must succeed: it waits when it is told to, and says why it can't go on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import httpx
import orjson
import trio

from deskwire.commands.api_client.service import problem_in_words, reason_in_words
from deskwire.commands.demo.errors import DemoError

_TRIES: Final = 20
_PAUSE_MAX_S: Final = 10.0
_LATER: Final = frozenset({429, 503})


class Person:
    """Calls with a token or a server key.

    Args:
        base_url: scheme, host and port, without `/v3`.
        project: the project's id, for a token.
    """

    def __init__(self, base_url: str, credential: str = "", project: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {credential}"} if credential else {}
        self._client = httpx.AsyncClient(
            base_url=f"{base_url}/v3",
            headers=headers | ({} if project is None else {"project": project}),
            timeout=60,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        """Return itself; the connections are closed at the end of the block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def get(self, path: str, **params: str) -> Any:
        """Return the answer to a GET. Raises DemoError."""
        return await self._call("GET", path, params=params)

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the answer to a POST. Raises DemoError."""
        return await self._call("POST", path, json=dict(body or {}))

    async def put(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the answer to a PUT. Raises DemoError."""
        return await self._call("PUT", path, json=dict(body))

    async def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the answer to a PATCH. Raises DemoError."""
        return await self._call("PATCH", path, json=dict(body))

    async def upload(self, name: str, content: bytes, kind: str) -> str:
        """Send a file; return its id. Raises DemoError."""
        answer = await self._call("POST", "/uploads", files={"file": (name, content, kind)})
        return str(answer["id"])

    async def send_lines(self, path: str, records: Sequence[Mapping[str, Any]]) -> Any:
        """Return the answer to lines of JSON. Raises DemoError."""
        content = b"".join(orjson.dumps(record) + b"\n" for record in records)
        return await self._call(
            "POST", path, content=content, headers={"Content-Type": "application/x-ndjson"}
        )

    async def _call(self, method: str, path: str, **parts: Any) -> Any:
        for _ in range(_TRIES):
            try:
                response = await self._client.request(method, path, **parts)
            except httpx.TransportError as error:
                raise DemoError(f"{method} {path}: {reason_in_words(error)}") from error
            if response.status_code not in _LATER:
                break
            await trio.sleep(_pause_s(response.headers.get("Retry-After", "")))
        body = _json(response)
        if not response.is_success:
            raise DemoError(f"{method} {path}: {problem_in_words(response.status_code, body)}")
        return body


def _json(response: httpx.Response) -> Any:
    try:
        return orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return None


def _pause_s(retry_after: str) -> float:
    try:
        asked_s = float(retry_after)
    except ValueError:
        return 1.0
    return min(max(asked_s, 0.2), _PAUSE_MAX_S) if math.isfinite(asked_s) else 1.0
