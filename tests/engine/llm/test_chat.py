"""The language model client against a real server on a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator

import orjson
import pytest
import trio

from deskwire.engine.llm.chat import RESPONSE_BYTES_MAX, ModelError, OpenAiChat
from tests.support.sockets.model_server import NEVER, ModelServer, http, model_server, said

SCHEMA = {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}
MESSAGES = [{"role": "user", "content": "Sum it up."}]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with model_server() as started:
        yield started


def chat(server: ModelServer, *, key: str | None = None, timeout_s: float = 10) -> OpenAiChat:
    return OpenAiChat(server.url, key, "small-1", timeout_s=timeout_s)


async def test_call_requests_an_answer_that_follows_the_schema(server: ModelServer) -> None:
    server.answer({"summary": "Fine."})
    assert await chat(server, key="sk-test").complete(MESSAGES, SCHEMA) == {"summary": "Fine."}
    (asked,) = server.asked
    assert asked["model"] == "small-1"
    assert asked["messages"] == MESSAGES
    form = {"name": "answer", "strict": True, "schema": SCHEMA}
    assert asked["response_format"] == {"type": "json_schema", "json_schema": form}
    (head,) = server.heads
    assert head.startswith("POST /v1/chat/completions HTTP/1.1\r\n")
    assert "Authorization: Bearer sk-test" in head


async def test_without_a_key_no_credential_is_sent(server: ModelServer) -> None:
    server.answer({"summary": "Fine."})
    await chat(server).complete(MESSAGES, SCHEMA)
    assert "authorization" not in server.heads[0].lower()


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (http("500 Oops", b"{}"), "It answered with status 500."),
        (http("302 Found", b"", Location="http://127.0.0.1:1/"), "It answered with status 302."),
        (http("200 OK", b"<html>"), "Its answer is not JSON."),
        (http("200 OK", b"[]"), "Its answer has no text."),
        (http("200 OK", b'{"choices": []}'), "Its answer has no text."),
        (http("200 OK", b'{"choices": [{"message": {"content": null}}]}'), "Its answer has no text."),
        (said("Fine."), "Its text is not JSON, although JSON was requested."),
        (said("[1]"), "Its text is JSON but no object."),
        (
            http("200 OK", b" " * (RESPONSE_BYTES_MAX + 1)),
            f"Its answer is larger than {RESPONSE_BYTES_MAX:,} bytes.",
        ),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "It can't be reached: RemoteProtocolError."),
    ],
)
async def test_an_invalid_response_is_one_error_after_one_attempt(
    server: ModelServer, reply: bytes, reason: str
) -> None:
    server.reply = reply
    with pytest.raises(ModelError) as refused:
        await chat(server).complete(MESSAGES, SCHEMA)
    assert str(refused.value) == reason
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"summary": "Fine {so far}."}\n```',
        '```\n{"summary": "Fine {so far}."}\n```\n',
        'Here is the summary:\n\n{"summary": "Fine {so far}."}\n\nTell me if you need more.',
    ],
)
async def test_an_object_in_a_code_fence_or_between_sentences_is_the_answer(
    server: ModelServer, text: str
) -> None:
    server.reply = said(text)
    assert await chat(server).complete(MESSAGES, SCHEMA) == {"summary": "Fine {so far}."}


@pytest.mark.parametrize("text", ["```json\n{\n```", 'Either {"a": 1} or {"a": 2}.', "}{", "{not: json}"])
async def test_a_text_without_one_object_in_it_is_an_error(server: ModelServer, text: str) -> None:
    server.reply = said(text)
    with pytest.raises(ModelError, match="not JSON"):
        await chat(server).complete(MESSAGES, SCHEMA)


async def test_a_server_that_never_answers_is_given_up(server: ModelServer) -> None:
    server.reply = NEVER
    with pytest.raises(ModelError, match=r"^It did not answer within 0\.2 s\.$"):
        await chat(server, timeout_s=0.2).complete(MESSAGES, SCHEMA)


async def test_missing_server_is_an_error() -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    model = OpenAiChat(f"http://127.0.0.1:{port}", None, "small-1", timeout_s=10)
    with pytest.raises(ModelError, match="can't be reached: ConnectError"):
        await model.complete(MESSAGES, SCHEMA)


async def test_the_key_is_in_no_error(server: ModelServer) -> None:
    server.reply = http("401 Unauthorized", orjson.dumps({"error": {"message": "Bad key sk-test"}}))
    with pytest.raises(ModelError) as refused:
        await chat(server, key="sk-test").complete(MESSAGES, SCHEMA)
    assert "sk-test" not in str(refused.value)
