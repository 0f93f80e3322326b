"""Client of an OpenAI-compatible chat-completions API (decisions 7).

Source: platform.openai.com/docs/api-reference/chat. Each call makes one POST, without retries or redirects,
and reads a limited response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import httpx
import orjson
import trio

# Bytes read of a response. A text of 20,000 characters takes a tenth of it.
RESPONSE_BYTES_MAX: Final = 1 << 20

# Concurrent calls. Further calls wait, which counts towards their timeout.
CALLS_MAX: Final = 8


class OpenAiChat:
    """A `ChatModel` on a server with the OpenAI API.

    Args:
        url: base of the API, such as `https://models.example.com/v1`.
        key: sent as the bearer token; None for a server without authentication.
        name: name of the model on the server.
        timeout_s: timeout of a call, from waiting for a slot to the response's last byte.
    """

    def __init__(self, url: str, key: str | None, name: str, *, timeout_s: float) -> None:
        self._url = f"{url}/chat/completions"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._name = name
        self._timeout_s = timeout_s
        self._slots = trio.CapacityLimiter(CALLS_MAX)

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """See `ChatModel.complete`."""
        with trio.move_on_after(self._timeout_s):
            async with self._slots:
                return _parse_response(await self._post(_request(self._name, messages, schema)))
        raise ModelError(f"It did not answer within {self._timeout_s:g} s.")

    async def _post(self, body: bytes) -> bytes:
        # The limit is on bytes of the network, so a small compressed response must not expand to a large one.
        headers = {**self._headers, "Content-Type": "application/json", "Accept-Encoding": "identity"}
        try:
            async with (
                httpx.AsyncClient(timeout=None, trust_env=False, follow_redirects=False) as client,
                client.stream("POST", self._url, content=body, headers=headers) as response,
            ):
                if response.status_code != httpx.codes.OK:
                    raise ModelError(f"It answered with status {response.status_code}.")
                return await _read_response(response)
        except httpx.HTTPError as error:
            raise ModelError(f"It can't be reached: {type(error).__name__}.") from error


async def _read_response(response: httpx.Response) -> bytes:
    answer = bytearray()
    with trio.CancelScope() as reading:
        async for chunk in response.aiter_raw():
            answer += chunk
            if len(answer) > RESPONSE_BYTES_MAX:
                reading.cancel()  # ends the generators inside; leaving the loop would not
    if len(answer) > RESPONSE_BYTES_MAX:
        raise ModelError(f"Its answer is larger than {RESPONSE_BYTES_MAX:,} bytes.")
    return bytes(answer)


def _request(name: str, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> bytes:
    form = {"name": "answer", "strict": True, "schema": schema}
    return orjson.dumps(
        {
            "model": name,
            "messages": messages,
            "response_format": {"type": "json_schema", "json_schema": form},
        }
    )


def _parse_response(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object in the first choice's text. Raises ModelError."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise ModelError("Its answer is not JSON.") from None
    match answer:
        case {"choices": [{"message": {"content": str(content)}}, *_]}:
            pass
        case _:
            raise ModelError("Its answer has no text.")
    value = _parse_json(content)
    if not isinstance(value, dict):
        raise ModelError("Its text is JSON but no object.")
    return value


def _parse_json(content: str) -> Any:
    """Return the JSON in a text, also inside a code fence or between sentences.

    Raises ModelError.
    """
    begins, ends = content.find("{"), content.rfind("}") + 1
    for text in (content, content[begins:ends] if begins >= 0 else ""):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            continue
    raise ModelError("Its text is not JSON, although JSON was requested.")


class ModelError(Exception):
    """A model call failed; the message explains how."""


class ChatModel(Protocol):
    """A language model that answers in JSON."""

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the model's JSON object for `messages` (`{role, content}`).

        One attempt. Raises ModelError.

        Args:
            schema: JSON Schema for the answer. The model may violate it.
        """
