"""Chats in, requests out: the fields that are read, the refusals, and the requests for each chat."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from deskwire.commands.demo.chats import BadChats, Chat, ChatStep, ChatTurn, load_chats, parse_chats, script
from tests.support.replay.effects import effects_of
from tests.support.replay.history import Effect

DIALOGUES = Path(__file__).parents[2].parent / "shared" / "data" / "dialogues.jsonl"

HELLO = {"speaker": "customer", "text": "Hello"}
CHAT: dict[str, Any] = {"id": "a", "topic": ["delivery"], "turns": [HELLO]}


def parse(*lines: Any) -> tuple[Chat, ...]:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    return parse_chats("\n".join(texts).encode(), "The test's lines")


def spoken(*speakers: Any) -> Chat:
    return Chat(
        id="c", turns=tuple(ChatTurn(speaker=speaker, text=f"{n}") for n, speaker in enumerate(speakers))
    )


def steps(chat: Chat, number: int = 1) -> list[ChatStep]:
    return list(script(chat, number, f"u{number}"))


def kinds(number: int) -> list[str]:
    return [step.kind for step in steps(spoken("customer", "agent"), number)]


def test_chat_is_read_with_its_customers_data_and_without_other_fields() -> None:
    known = {"name": "Ada", "email": "ada@example.com", "memberLevel": "gold"}
    (chat,) = parse({**CHAT, "customer": known, "source": "somewhere"}, "", "  ")
    assert (chat.id, chat.topic, chat.turns) == (
        "a",
        ("delivery",),
        (ChatTurn(speaker="customer", text="Hello"),),
    )
    assert (chat.customer.name, chat.customer.email) == ("Ada", "ada@example.com")


def test_the_bundled_chats_are_varied() -> None:
    chats = load_chats(None)
    assert 6 <= len(chats) <= 8
    assert all(6 <= len(chat.turns) <= 14 for chat in chats)
    assert {turn.speaker for chat in chats for turn in chat.turns} == {"customer", "agent", "system"}
    assert {chat.turns[0].speaker for chat in chats} == {"customer", "agent"}
    everything = "".join(turn.text for chat in chats for turn in chat.turns)
    assert {"AL", "R"} <= {unicodedata.bidirectional(letter) for letter in everything}  # Arabic, Hebrew
    assert any(ord(letter) > 0xFFFF for letter in everything)  # emoji


def test_every_bad_line_is_named_with_all_its_problems() -> None:
    with pytest.raises(BadChats) as refusal:
        parse(
            CHAT,
            "{not json",
            {"id": "b", "turns": [{"speaker": "robot", "text": ""}]},
            "",
            {"id": "c", "turns": []},
            {**CHAT, "turns": [HELLO, HELLO]},
            "[]",
            {"id": "d", "turns": [{"speaker": "agent", "text": "x" * 20_001}]},
        )
    named = {line: text for line, _, text in (each.partition(": ") for each in refusal.value.problems)}
    assert list(named) == ["line 2", "line 3", "line 5", "line 6", "line 7", "line 8"]
    assert named["line 2"].startswith("not JSON: ")
    assert "turns.0.speaker: " in named["line 3"]
    assert "turns.0.text: " in named["line 3"]
    assert named["line 6"] == "the id 'a' is that of line 1"
    assert "20000" in named["line 8"]
    assert all(f"  {each}" in str(refusal.value) for each in refusal.value.problems)


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_a_chat_is_refused(content: bytes) -> None:
    with pytest.raises(BadChats, match="there is no chat in it"):
        parse_chats(content, "It")


def test_bytes_that_are_no_text_are_a_bad_line() -> None:
    with pytest.raises(BadChats, match="line 1: not JSON"):
        parse_chats(b'{"id": "\xff"}', "It")


@pytest.mark.skipif(not DIALOGUES.exists(), reason="the dialogues are not beside this repository")
def test_real_dialogues_are_read_without_complaint() -> None:
    assert len(load_chats(DIALOGUES)) == 768


def test_a_chat_that_the_customer_begins_is_created_with_the_first_message() -> None:
    first, *rest = steps(spoken("customer", "agent", "system"))
    assert first == ChatStep(
        "create", "POST", "", {"contact": {"userId": "u1"}, "message": {"text": "0"}}, "message.created"
    )
    assert [step.body["author"]["type"] for step in rest] == ["agent", "system"]


def test_a_chat_that_the_agent_begins_is_created_empty() -> None:
    first, *rest = steps(spoken("agent", "customer"))
    assert "message" not in first.body
    assert [(step.body["text"], step.body["author"]["type"]) for step in rest] == [
        ("0", "agent"),
        ("1", "contact"),
    ]


def test_number_of_the_chat_decides_the_requests_after_its_last_turn() -> None:
    start = ["create", "message"]
    assert kinds(1) == start
    assert kinds(2) == [*start, "close"]
    assert kinds(3) == [*start, "rate"]
    assert kinds(4) == [*start, "patch", "close"]
    assert kinds(5) == [*start, "close", "message"]
    assert kinds(60) == [*start, "patch", "close", "rate", "message"]


def test_a_message_of_the_contact_in_a_closed_conversation_must_reopen_it() -> None:
    *_, last = steps(spoken("customer"), 5)
    answer = {"id": "msg_1"}
    assert [effect.type for effect in effects_of(last, answer, closed=True)] == [
        "conversation.reopened",
        "message.created",
    ]
    assert effects_of(last, answer, closed=False) == (Effect("message.created", {"message": answer}),)


def test_agents_message_reopens_no_conversation() -> None:
    _, last = steps(spoken("customer", "agent"))
    assert [effect.type for effect in effects_of(last, {}, closed=True)] == ["message.created"]
