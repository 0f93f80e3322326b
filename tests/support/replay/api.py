"""The service's HTTP API for a careful client, which retries only requests that had no effect."""

from __future__ import annotations

import math
import ssl
from typing import Any, Final

import httpx
import orjson
import trio
from msgspec import Struct

from deskwire.commands.api_client.service import SinglePieceBody, problem_in_words, reason_in_words
from tests.support.replay.history import Outcome

TRIES_MAX: Final = 12
"""Requests for one call that the service has put off; with its pauses of a second, well over ten seconds."""
PAUSE_MAX_S: Final = 10.0
"""Longest pause taken between two of them, whatever `Retry-After` says."""
AWAY_S: Final = 30.0
"""The default of `away_s`; a restart takes a few seconds."""
_KNOCK_S: Final = 0.2
_LATER: Final = frozenset({429, 503})
_TIMEOUT: Final = httpx.Timeout(30.0, connect=5.0, pool=None)
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout)


class Result(Struct, frozen=True):
    """The result of a call.

    Args:
        sent_at: when the request that was answered, or got lost, was sent (trio's clock).
        status: None if no response came.
        body: the JSON of a response with 200, else None.
        raw: the bytes of that response.
        detail: why it was refused or not acknowledged.
    """

    outcome: Outcome
    sent_at: float
    status: int | None = None
    body: Any = None
    detail: str = ""
    raw: bytes = b""


class Api:
    """Calls with one server key.

    Args:
        base_url: scheme, host and port, without `/v3`.
        connections: open at once; more calls wait.
        trust: verifies the service's certificate; None for the public authorities.
        away_s: how long a service that can't be connected to is waited for.
    """

    def __init__(
        self,
        base_url: str,
        key: str,
        connections: int,
        trust: ssl.SSLContext | None = None,
        away_s: float = AWAY_S,
    ) -> None:
        self.base_url: Final = base_url
        self.away_s: Final = away_s
        self.trust: Final = trust or httpx.create_ssl_context()  # heeds SSL_CERT_FILE
        self.put_off = 0
        """Requests that were answered with 429 or 503 and sent again."""
        self._client = httpx.AsyncClient(
            base_url=f"{base_url}/v3",
            headers={"Authorization": f"Bearer {key}"},
            timeout=_TIMEOUT,
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            verify=self.trust,
            trust_env=False,  # a proxy would only stand between the demo and what it measures
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def call(self, method: str, path: str, body: Any = None, *, repeatable: bool = False) -> Result:
        """Send a request and return its outcome; never raises for failures of the network or service.

        Requests that were certainly not carried out are retried, with pauses and a limit: answers 429 and 503, and
        connections that were refused. An answer that got lost is `unacknowledged`: the command may have
        happened, and sending it again could make it happen twice.

        Args:
            repeatable: sending it twice does no harm, so that lost answers are asked for again.
        """
        content = b"" if body is None else orjson.dumps(body)
        headers = {"Content-Length": str(len(content))}
        if body is not None:
            headers["Content-Type"] = "application/json"
        give_up = trio.current_time() + self.away_s
        tries = 0
        while True:
            sent_at = trio.current_time()
            try:
                request = self._client.build_request(method, path, headers=headers)
                request.stream = SinglePieceBody(content)
                response = await self._client.send(request)
            except httpx.TransportError as error:
                again = repeatable or isinstance(error, _NOT_SENT)
                if not again or sent_at >= give_up:
                    outcome: Outcome = "refused" if isinstance(error, _NOT_SENT) else "unacknowledged"
                    return Result(outcome, sent_at, detail=reason_in_words(error))
                await trio.sleep(_KNOCK_S)
                continue
            tries += 1
            if response.status_code not in _LATER or tries == TRIES_MAX:
                return _result(response, sent_at)
            self.put_off += 1
            await trio.sleep(_pause_s(response.headers.get("Retry-After", "")))


def _pause_s(retry_after: str) -> float:
    try:
        asked_s = float(retry_after)
    except ValueError:
        return 1.0
    return min(max(asked_s, _KNOCK_S), PAUSE_MAX_S) if math.isfinite(asked_s) else 1.0


def _result(response: httpx.Response, sent_at: float) -> Result:
    status = response.status_code
    try:
        body: Any = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        body = None
    if status == httpx.codes.OK and body is not None:
        return Result("acknowledged", sent_at, status, body, raw=response.content)
    return Result("refused", sent_at, status, None, problem_in_words(status, body))
