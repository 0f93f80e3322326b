"""The HTTP client of commands: each call returns a response, or raises with a readable reason."""

from __future__ import annotations

import json
import math
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self

import httpx
import orjson

from deskwire.commands.api_client.access import ServiceAccess

READ_TIMEOUT_S: Final = 15.0  # in addition to the wait that the request asked for
_TIMEOUT: Final = httpx.Timeout(10.0, connect=5.0, read=READ_TIMEOUT_S, pool=None)
_NDJSON: Final = "application/x-ndjson"
_LATER: Final = frozenset({429, 500, 502, 503, 504})


class ServiceError(Exception):
    """A failed call; the text gives the reason."""


class ServiceUnavailable(ServiceError):
    """The service can't be reached or is failing; the same call may succeed later.

    Args:
        retry_after_s: the service's `Retry-After`, if any.
        code: the problem's code, "" without one.
    """

    def __init__(self, words: str, retry_after_s: float | None = None, code: str = "") -> None:
        super().__init__(words)
        self.retry_after_s: Final = retry_after_s
        self.code: Final = code


class CallRefused(ServiceError):
    """The service refused the call; a repetition would be refused, too.

    Args:
        status: the answer's status.
        code: the problem's code, "" without one.
        problems: the problems of the call's body, each as `pointer: message`.
    """

    def __init__(self, status: int, code: str, words: str, problems: Sequence[str] = ()) -> None:
        super().__init__(words)
        self.status: Final = status
        self.code: Final = code
        self.problems: Final = problems


class SinglePieceBody(httpx.AsyncByteStream):
    """A body in one piece.

    httpx uses an async generator, which the garbage collector has to close if the connection breaks during
    the request; Trio warns about that.
    """

    def __init__(self, content: bytes) -> None:
        self._pieces = iter((content,) if content else ())

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        for piece in self._pieces:
            return piece
        raise StopAsyncIteration


class Service:
    """Calls with one server key; an async context manager that closes its connections."""

    def __init__(self, access: ServiceAccess) -> None:
        self.url: Final = access.url
        self._client = httpx.AsyncClient(
            base_url=f"{access.url}/v3",
            headers={"Authorization": f"Bearer {access.key}"},
            timeout=_TIMEOUT,
            trust_env=False,  # the service often runs on this machine, where a proxy would be in the way
            verify=access.trust or httpx.create_ssl_context(),  # heeds SSL_CERT_FILE, for a private authority
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def get(self, path: str, params: Mapping[str, str] | None = None, wait_s: float = 0) -> bytes:
        """Return the raw body of the response to a GET below `/v3`.

        Args:
            wait_s: seconds that the request asks the service to wait.

        Raises ServiceUnavailable and CallRefused.
        """
        return await self._call("GET", path, params or {}, b"", wait_s)

    async def fetch(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        """Return the JSON of the response to a GET below `/v3`. Raises ServiceUnavailable and CallRefused."""
        return _json(await self.get(path, params))

    async def post(self, path: str, body: Any = None, wait_s: float = 0) -> Any:
        """Return the JSON of the response to a POST below `/v3`; see `get`. Raises ServiceUnavailable and CallRefused."""
        content = b"" if body is None else orjson.dumps(body)
        return _json(await self._call("POST", path, {}, content, wait_s))

    async def patch(self, path: str, body: Any) -> Any:
        """Return the JSON of the response to a PATCH below `/v3`. Raises ServiceUnavailable and CallRefused."""
        return _json(await self._call("PATCH", path, {}, orjson.dumps(body), 0))

    async def delete(self, path: str, wait_s: float = 0) -> Any:
        """Return the JSON of the response to a DELETE below `/v3`. Raises ServiceUnavailable and CallRefused."""
        return _json(await self._call("DELETE", path, {}, b"", wait_s))

    async def post_lines(self, path: str, content: bytes, params: Mapping[str, str], wait_s: float) -> Any:
        """Post lines of JSON (NDJSON); see `post`."""
        return _json(await self._call("POST", path, params, content, wait_s, _NDJSON))

    async def pieces(self, path: str) -> AsyncIterator[bytes]:
        """Yield the body of the response to a GET below `/v3`, of any length. Raises ServiceUnavailable and CallRefused."""
        try:
            async with self._client.stream("GET", path) as answer:
                if answer.status_code != HTTPStatus.OK:
                    await answer.aread()
                    raise _failure(answer)
                async for piece in answer.aiter_bytes():
                    yield piece
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise ServiceUnavailable(f"{self.url} can't be reached: {reason_in_words(error)}") from error

    async def _call(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        content: bytes,
        wait_s: float,
        kind: str = "application/json",
    ) -> bytes:
        headers = {"Content-Length": str(len(content))} if method != "GET" else {}
        if content:
            headers["Content-Type"] = kind
        timeout = httpx.Timeout(
            _TIMEOUT.write, connect=_TIMEOUT.connect, read=READ_TIMEOUT_S + wait_s, pool=None
        )
        request = self._client.build_request(method, path, params=params, headers=headers, timeout=timeout)
        request.stream = SinglePieceBody(content)
        try:
            answer = await self._client.send(request)
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise ServiceUnavailable(f"{self.url} can't be reached: {reason_in_words(error)}") from error
        if answer.status_code == HTTPStatus.OK:
            return answer.content
        raise _failure(answer)


def problem_in_words(status: int, body: Any) -> str:
    """Return a problem document (RFC 9457) as one line of text."""
    if not isinstance(body, dict):
        return f"HTTP {status}"
    named = "; ".join(_problems(body))
    return f"HTTP {status} {body.get('code', '')}: {named or body.get('detail', '')}"


def _problems(body: Any) -> list[str]:
    """Return the individual problems of a problem document."""
    problems = body.get("errors") if isinstance(body, dict) else None
    return [f"{each['pointer']}: {each['message']}" for each in problems or ()]


def _failure(answer: httpx.Response) -> ServiceError:
    status = answer.status_code
    try:
        body: Any = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        body = None
    words = problem_in_words(status, body)
    code = str(body.get("code") or "") if isinstance(body, dict) else ""
    if status in _LATER:
        return ServiceUnavailable(
            f"{answer.request.url.host} is failing: {words}", _seconds(answer.headers), code
        )
    if status == HTTPStatus.UNAUTHORIZED:
        words = f"The server key is not accepted; check --key, DESKWIRE_KEY or demo.json ({words})"
    return CallRefused(status, code, words, _problems(body))


def _seconds(headers: httpx.Headers) -> float | None:
    try:
        seconds = float(headers.get("Retry-After", ""))
    except ValueError:
        return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def reason_in_words(error: BaseException) -> str:
    """Return the readable reason for a missing response: the innermost exception that has one."""
    while not str(error) and (within := error.__cause__ or error.__context__) is not None:
        error = within
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{error.verify_message}; --cacert names your own authority"
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _json(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ServiceUnavailable("The response is not JSON: is this a Deskwire service?") from error


_ITEMS: Final = '{"items":['
_DECODER: Final = json.JSONDecoder()


def raw_items(page: bytes) -> list[bytes]:
    """Return the items of a page of a list, as the bytes that the service sent.

    Raises ValueError if the page does not have the service's layout.
    """
    text = page.decode()
    if not text.startswith(_ITEMS):
        raise ValueError("the page does not begin with its items")
    items, at = list[bytes](), len(_ITEMS)
    while text[at : at + 1] != "]":
        at += text[at : at + 1] == ","
        _, end = _DECODER.raw_decode(text, at)
        items.append(text[at:end].encode())
        at = end
    return items
