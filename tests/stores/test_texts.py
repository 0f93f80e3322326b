"""Unusual texts are returned exactly as sent, from every field that stores them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from deskwire.engine.conversations.commands import Patch, ReplaceNetworkLogs
from tests.support.builders import PROJECT, create, post, running
from tests.support.seeing import seen

TEXTS = {
    "NUL": "before\x00after",
    "controls": "\x01\x1f\x7f\r\n\t",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 ¿ñ?",
    "right to left": "\u202b\N{HEBREW LETTER ALEF}\N{HEBREW LETTER VAV}\u202c \N{ARABIC LETTER MEEM}",
    "combining": "e\u0301 is not \u00e9",
    "largest code point": "\U0010ffff",
    "SQL": "'); DROP TABLE messages; --",
    "JSON": '{"a": "\\u0000"} \\ "quoted"',
    "a long message": "語" * 20_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_text_is_returned_as_sent(tmp_path: Path, text: str) -> None:
    command = create(
        "user " + text, {"name": text}, title=text, attributes={text[:50]: text}, message=post(text=text)
    )
    async with running(tmp_path) as engine:
        await engine.directory.create(PROJECT, command)
    async with running(tmp_path) as engine:
        found = seen(engine.store, lambda reader: reader.conversation(PROJECT.rowid, command.conversation_id))
        assert found is not None
        conversation, contact = found
        assert (conversation.title, conversation.attributes) == (text, {text[:50]: text})
        assert (contact.user_id, contact.name) == ("user " + text, text)
        assert seen(engine.store, lambda reader: reader.contact(PROJECT.rowid, "user " + text)) == contact
        (message,) = seen(engine.store, lambda reader: reader.messages(conversation.rowid, internal=False))
        assert (message.text, message.author.name) == (text, text)
        bodies = seen(engine.store, lambda reader: reader.conversation_events(conversation.rowid, 0, 10))
        sent = orjson.loads(bodies[1])["data"]
        assert (sent["message"]["text"], sent["conversation"]["title"]) == (text, text)


@pytest.mark.parametrize(
    "attributes",
    [
        {"deep": [[[[{"a": [None, True, 1, 1.5, "x"]}]]]]},
        {str(n): "v" * 100 for n in range(100)},
        {"": "", " ": " ", "é": "\u00e9", "e\u0301": "not the same key"},
        {"largest": 2**63 - 1, "smallest": -(2**63), "small": 5e-324, "large": 1.7976931348623157e308},
        {"float": 1.0, "int": 1, "bool": True, "zero": -0.0},
    ],
)
async def test_attributes_come_back_as_they_were_sent(tmp_path: Path, attributes: dict[str, Any]) -> None:
    command = create()
    async with running(tmp_path) as engine:
        await engine.directory.create(PROJECT, command)
        await engine.directory.ask(PROJECT, command.conversation_id, Patch({"attributes": attributes}))
        found = seen(engine.store, lambda reader: reader.conversation(PROJECT.rowid, command.conversation_id))
        assert found is not None
        assert orjson.dumps(found[0].attributes) == orjson.dumps(attributes)


async def test_a_network_log_snapshot_is_stored_byte_for_byte_and_replaced_whole(tmp_path: Path) -> None:
    command = create()
    async with running(tmp_path) as engine:
        receipt = await engine.directory.create(PROJECT, command)
        assert receipt.state is not None
        rowid = receipt.state.rowid
        for snapshot in (bytes(range(256)) * 8_192, b' {"requests" : [ ] } ', b""):
            await engine.directory.ask(PROJECT, command.conversation_id, ReplaceNetworkLogs(snapshot))
            assert seen(engine.store, lambda reader: reader.network_logs(rowid)) == snapshot
