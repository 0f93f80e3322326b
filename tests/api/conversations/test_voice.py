"""Voice replies through the wire, with a model on a real socket (contract 4.2; decisions 7)."""

from __future__ import annotations

import base64
import io
import json
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.api.uploads.test_uploads import PNG, send
from tests.support.api.service import Service, running
from tests.support.sockets.model_server import NEVER, ModelServer, http, model_server, said

MP3 = (bytes.fromhex("fffb9064") + bytes(413)) * 80


def wav(seconds: float = 1.0) -> bytes:
    """Return a recording of silence."""
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8_000)
        file.writeframes(bytes(int(seconds * 8_000) * 2))
    return made.getvalue()


@asynccontextmanager
async def with_model(directory: Path, **settings: Any) -> AsyncIterator[tuple[Service, ModelServer]]:
    """Yield a service that has a model."""
    async with (
        model_server() as model,
        running(directory, model_url=model.url, model_name="voice-1", **settings) as service,
    ):
        yield service, model


async def ticket_of(service: Service, **fields: Any) -> str:
    """Return the id of a new ticket."""
    answer = await service.dashboard.post("/tickets", json={"title": "Parcel lost", **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def ask(service: Service, ticket: str, url: str, **fields: Any) -> httpx.Response:
    return await service.dashboard.post(f"/tickets/{ticket}/voice-reply", json={"audioUrl": url, **fields})


async def test_a_draft_is_made_of_recording_ticket_and_conversation_in_one_call(tmp_path: Path) -> None:
    async with with_model(tmp_path) as (service, model):
        conversation = await service.create(message={"text": "Where is my parcel?"})
        note = {"text": "He is difficult", "internal": True}
        await service.dashboard.post(f"/conversations/{conversation['id']}/messages", json=note)
        fields = {"description": "A-1001", "tags": ["fraud"], "type": "complaint", "priority": "URGENT"}
        ticket = await ticket_of(service, **fields, conversationId=conversation["id"])
        upload = await send(service, wav(), "keywords.wav")
        model.answer({"transcript": "sorry, tomorrow", "reply": "We are sorry. It arrives tomorrow."})
        answer = await ask(service, ticket, upload["url"])
        assert answer.status_code == 200, answer.text
        assert answer.json() == {
            "reply": "We are sorry. It arrives tomorrow.",
            "transcript": "sorry, tomorrow",
            "mode": "smart",
        }
        (asked,) = model.asked
        context, audio = asked["messages"][1]["content"]
        assert audio["type"] == "input_audio"
        assert audio["input_audio"]["format"] == "wav"
        assert base64.b64decode(audio["input_audio"]["data"]) == wav()
        for told in ("Parcel lost", "A-1001", "Where is my parcel?"):
            assert told in context["text"]
        for kept in ("difficult", "fraud", "complaint", "URGENT", "OPEN"):
            assert kept not in context["text"]
        assert json.loads(context["text"])["ticket"]["internal"] == {"description": "A-1001"}
        assert "never quote, mention or hint at it" in asked["messages"][0]["content"]


async def test_a_draft_in_a_conversation_needs_no_ticket(tmp_path: Path) -> None:
    async with with_model(tmp_path) as (service, model):
        conversation = await service.create(message={"text": "Where is my parcel?"})
        note = {"text": "He is difficult", "internal": True}
        await service.dashboard.post(f"/conversations/{conversation['id']}/messages", json=note)
        upload = await send(service, wav(), "keywords.wav")
        path = f"/conversations/{conversation['id']}/voice-reply"
        model.answer({"transcript": "sorry, tomorrow", "reply": "We are sorry. It arrives tomorrow."})
        drafted = await service.dashboard.post(path, json={"audioUrl": upload["url"]})
        assert drafted.json() == {
            "reply": "We are sorry. It arrives tomorrow.",
            "transcript": "sorry, tomorrow",
            "mode": "smart",
        }
        context = model.asked[0]["messages"][1]["content"][0]["text"]
        assert "Where is my parcel?" in context
        assert "difficult" not in context
        assert "ticket" not in context
        model.answer({"transcript": "Good morning."})
        dictated = await service.dashboard.post(path, json={"audioUrl": upload["url"], "mode": "dictate"})
        assert dictated.json() == {"reply": "Good morning.", "transcript": "Good morning.", "mode": "dictate"}
        assert len(model.asked[1]["messages"][1]["content"]) == 1, "the recording alone"
        unknown = "/conversations/cnv_00000000000000000000000000/voice-reply"
        gone = await service.dashboard.post(unknown, json={"audioUrl": upload["url"]})
        assert (gone.status_code, gone.json()["code"]) == (404, "conversation_not_found")


async def test_dictation_is_transcribed_verbatim_without_context(tmp_path: Path) -> None:
    async with with_model(tmp_path) as (service, model):
        ticket, upload = await ticket_of(service), await send(service, MP3, "a.mp3")
        model.answer({"transcript": "Dear Ada, hello."})
        answer = await ask(service, ticket, upload["url"], mode="dictate")
        assert answer.json() == {
            "reply": "Dear Ada, hello.",
            "transcript": "Dear Ada, hello.",
            "mode": "dictate",
        }
        (audio,) = model.asked[0]["messages"][1]["content"]
        assert audio["input_audio"]["format"] == "mp3"


@pytest.mark.parametrize("mode", ["dictate", "smart", None])
async def test_a_model_that_adds_a_field_of_its_own_is_taken(tmp_path: Path, mode: str | None) -> None:
    async with with_model(tmp_path) as (service, model):
        ticket, upload = await ticket_of(service), await send(service, wav())
        model.answer({"transcript": "x", "reply": "y", "confidence": 0.9, "language": None})
        answer = await ask(service, ticket, upload["url"], **({} if mode is None else {"mode": mode}))
        assert answer.json() == {
            "transcript": "x",
            "reply": "x" if mode == "dictate" else "y",
            "mode": mode or "smart",
        }


async def test_the_model_sees_the_last_twenty_messages_alone(tmp_path: Path) -> None:
    async with with_model(tmp_path) as (service, model):
        conversation = await service.create()
        for number in range(22):
            await service.say(conversation, f"message-{number:02}")
        ticket = await ticket_of(service, conversationId=conversation["id"])
        model.answer({"transcript": "x", "reply": "y"})
        await ask(service, ticket, (await send(service, wav()))["url"])
        context = model.asked[0]["messages"][1]["content"][0]["text"]
        assert "message-01" not in context
        assert context.index("message-02") < context.index("message-21")


@pytest.mark.parametrize(
    "reply",
    [
        NEVER,
        http("500 Oops", b""),
        http("307 Moved", b"", Location="http://127.0.0.1:1/"),
        said("garbage"),
        said('{"reply": "x"}'),
        said('{"reply": "x", "transcript": 7}'),
        said('{"reply": " ", "transcript": "x"}'),
        said('{"reply": "' + "x" * 20_001 + '", "transcript": "y"}'),
    ],
    ids=["slow", "500", "redirect", "garbage", "missing", "type", "empty", "long"],
)
async def test_failing_model_is_called_once_and_answered_with_502(tmp_path: Path, reply: bytes) -> None:
    timeout_s = 2.0 if reply == NEVER else 60.0
    async with with_model(tmp_path, model_timeout_s=timeout_s) as (service, model):
        ticket, upload = await ticket_of(service), await send(service, wav())
        model.reply = reply
        answer = await ask(service, ticket, upload["url"])
        assert (answer.status_code, answer.json()["code"]) == (502, "model_failed")
        assert len(model.asked) == 1


async def test_one_reply_more_than_the_setting_allows_is_refused_until_one_has_ended(tmp_path: Path) -> None:
    async with with_model(tmp_path, voice_at_once=1, model_timeout_s=2.0) as (service, model):
        ticket, upload = await ticket_of(service), await send(service, wav())
        model.reply = NEVER
        ended: list[httpx.Response] = []

        async def first() -> None:
            ended.append(await ask(service, ticket, upload["url"]))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            await model.reached.wait()
            second = await ask(service, ticket, upload["url"])
            assert (second.status_code, second.json()["code"]) == (503, "voice_busy")
        assert ended[0].json()["code"] == "model_failed"
        model.answer({"transcript": "x", "reply": "y"})
        assert (await ask(service, ticket, upload["url"])).status_code == 200
        assert len(model.asked) == 2


async def test_missing_model_is_named_in_the_answer(service: Service) -> None:
    answer = await ask(service, await ticket_of(service), (await send(service, wav()))["url"])
    assert (answer.status_code, answer.json()["code"]) == (503, "model_not_configured")


async def test_only_recordings_of_this_project_are_accepted_and_none_is_fetched(
    tmp_path: Path,
) -> None:
    async with with_model(tmp_path, voice_audio_s=5.0, voice_audio_bytes=200_000) as (service, model):
        ticket, good = await ticket_of(service), (await send(service, wav()))["url"]
        for url, code in (
            (model.url, "url_not_signed"),
            ("http://169.254.169.254/latest/meta-data/", "url_not_signed"),
            ("file:///etc/passwd", "url_not_signed"),
            (good + "&x=1", "url_not_signed"),
            (good.replace("http://", "http://x@"), "url_not_signed"),
            ((await send(service, PNG))["url"], "audio_format"),
            ((await send(service, wav(6)))["url"], "audio_too_long"),
            ((await send(service, wav(100)))["url"], "audio_too_long"),
            ((await send(service, b"RIFF\x24\0\0\0WAVEfmt "))["url"], "audio_unreadable"),
        ):
            answer = await ask(service, ticket, url)
            (problem,) = answer.json()["errors"]
            assert (answer.status_code, problem["pointer"], problem["code"]) == (422, "/audioUrl", code), url
        unknown = await ask(service, "tkt_00000000000000000000000000", good)
        assert (unknown.status_code, unknown.json()["code"]) == (404, "ticket_not_found")
        assert (await ask(service, ticket, good, mode="loud")).status_code == 422
        assert model.asked == []


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0x7FFFFFFF, 2_000_000_000, 0])
async def test_a_recording_written_as_a_stream_lasts_as_long_as_its_sound(
    tmp_path: Path, length: int
) -> None:
    async with with_model(tmp_path, voice_audio_s=5.0) as (service, model):
        ticket = await ticket_of(service)
        for seconds, status in ((1, 200), (6, 422)):
            whole = wav(seconds)
            streamed = whole[:40] + length.to_bytes(4, "little") + whole[44:]
            upload = await send(service, streamed, "stream.wav")
            model.answer({"transcript": "Hello."})
            answer = await ask(service, ticket, upload["url"], mode="dictate")
            assert answer.status_code == status, answer.text
        assert answer.json()["errors"][0]["message"].startswith("The recording lasts 6 s;")


async def test_an_expired_url_of_a_recording_is_refused(tmp_path: Path) -> None:
    async with with_model(tmp_path, upload_url_s=0.0) as (service, model):
        answer = await ask(service, await ticket_of(service), (await send(service, wav()))["url"])
        assert answer.json()["errors"][0]["code"] == "url_not_signed"
        assert model.asked == []
