"""A line of an import is a record or a list of all its problems; the fast parser gives the same result as the full one."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.importing.records import ConversationRecord, MessageRecord, RefusedLine, fingerprint
from deskwire.http.api.input.ndjson import NdjsonLine
from deskwire.http.resources.imports import lines as import_lines
from deskwire.http.resources.imports.lines import LINE_BYTES, read_line
from tests.support.api.import_lines import conversation, message

NOW = 1_800_000_000_000

ODD = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.text(max_size=3)
    | st.lists(st.text(max_size=1), max_size=1)
)
IDS = st.sampled_from(["", "a", "é", "x" * 255, "x" * 256]) | ODD
TIMES = (
    st.sampled_from(
        [
            "2024-03-01T09:00:00Z",
            "2024-03-01T09:00:00.5Z",
            "2024-03-01T09:00:00.123Z",
            "2024-03-01T09:00:00+02:00",
            "2024-03-01",
            "20240301T090000Z",
            "2024-02-30T09:00:00Z",
            "2024-03-01T24:00:00Z",
            "2024-03-01T09:00:60Z",
            "1969-12-31T23:59:59Z",
            "9999-12-31T23:59:59.999Z",
            "",
        ]
    )
    | ODD
)
KINDS = st.sampled_from(["contact", "agent", "bot", "system", "robot"]) | ODD
AUTHORS = ODD | st.fixed_dictionaries(
    {"type": KINDS},
    optional={"name": st.sampled_from(["", "G", "n" * 200, "n" * 201]) | ODD, "id": ODD, "x": ODD},
)
MESSAGES = st.fixed_dictionaries(
    {
        "type": st.just("message"),
        "externalId": IDS,
        "conversation": IDS,
        "author": AUTHORS,
        "text": st.sampled_from(["", "t", "t" * 20_000, "t" * 20_001]) | ODD,
        "createdAt": TIMES,
    },
    optional={"internal": ODD, "attachments": ODD, "other": ODD},
)


def read(value: Any) -> Any:
    return read_line(NdjsonLine(3, orjson.dumps(value)), NOW)


@given(MESSAGES)
def test_fast_parser_accepts_no_more_than_the_model_and_reads_the_same(
    value: dict[str, Any],
) -> None:
    quick = read(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_lines, "_plain_message", lambda number, value: None)
        assert read(value) == quick


@pytest.mark.parametrize("kind", ["contact", "agent", "bot", "system"])
def test_usual_messages_use_the_fast_parser(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_lines, "validated", None)
    found = read(message("a", 0, author={"type": kind}))
    assert isinstance(found, MessageRecord)
    assert (found.author_type, found.line, found.conversation) == (kind, 3, "a")


def test_missing_fields_are_derived_from_the_others() -> None:
    closed = read(conversation("a", status="CLOSED", updatedAt="2024-03-01T10:00:00Z", rating=3))
    assert isinstance(closed, ConversationRecord)
    assert closed.closed_by == "system"
    assert (closed.updated_at, closed.closed_at, closed.rated_at) == (1_709_287_200_000, None, None)
    opened = read(conversation("a", attributes={"kept": [], "dropped": None}))
    assert isinstance(opened, ConversationRecord)
    assert (opened.closed_by, opened.closed_at, opened.rated_at) == (None, None, None)
    assert opened.attributes == {"kept": []}


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (conversation("a", closedAt="2024-03-01T10:00:00Z"), [("/closedAt", "not_allowed")]),
        (conversation("a", ratedAt="2024-03-01T10:00:00Z"), [("/ratedAt", "not_allowed")]),
        (
            conversation("a", contact={"userId": "u", "createdAt": "yesterday", "x": 1}),
            [("/contact/createdAt", "invalid"), ("/contact/x", "unknown_field")],
        ),
        (conversation("a", attributes={"a": "x" * 17_000}), [("/attributes", "invalid")]),
        (conversation("a", rating=1.5), [("/rating", "invalid")]),
        (conversation("a", createdAt=1), [("/createdAt", "invalid")]),
        (message("a", 0, attachments=["u", "u"]), [("/attachments", "repeated")]),
        (message("a", 0, author={"type": "contact", "name": "x"}), [("/author/name", "not_allowed")]),
    ],
)
def test_every_invalid_field_is_named(value: dict[str, Any], wrong: list[tuple[str, str]]) -> None:
    found = read(value)
    assert isinstance(found, RefusedLine)
    assert [(each.pointer, each.code) for each in found.problems] == wrong
    assert found.external_id == value["externalId"]


@pytest.mark.thorough
@given(st.binary(max_size=40) | st.recursive(ODD, lambda inner: st.lists(inner)).map(orjson.dumps))
def test_any_line_gives_a_record_or_a_refusal(content: bytes) -> None:
    assert isinstance(read_line(NdjsonLine(1, content), NOW), RefusedLine)


def test_a_line_nested_beyond_all_bounds_is_refused() -> None:
    deep = b"[" * 200 + b"]" * 200
    line = orjson.dumps(conversation("a", attributes={"a": 1})).replace(b'"a":1', b'"a":' + deep * 1)
    assert isinstance(read_line(NdjsonLine(1, line), NOW), ConversationRecord | RefusedLine)
    for levels in (300, 2_000, 100_000):
        line = b'{"type":"conversation","attributes":{"a":' + b"[" * levels + b"]" * levels + b"}}"
        assert isinstance(read_line(NdjsonLine(1, line), NOW), RefusedLine)


def test_the_longest_text_fits_a_line_however_it_is_escaped() -> None:
    value = message("x" * 250, 0, text="\U0001f600" * 20_000)
    spelled = "\\ud83d\\ude00" * 20_000
    line = orjson.dumps({**value, "text": "@"}).replace(b"@", spelled.encode())
    assert len(line) < LINE_BYTES
    found = read_line(NdjsonLine(3, line), NOW)
    assert isinstance(found, MessageRecord)
    assert found == read(value)


def test_fingerprint_depends_on_the_record_not_its_line() -> None:
    first, moved = read(message("a", 0)), read_line(NdjsonLine(9, orjson.dumps(message("a", 0))), NOW)
    assert isinstance(first, MessageRecord)
    assert isinstance(moved, MessageRecord)
    assert fingerprint(first) == fingerprint(moved) == 5_564_079_314_755_384_089  # is stored: must not change
    other = read(message("a", 0, internal=True))
    assert isinstance(other, MessageRecord)
    assert fingerprint(other) != fingerprint(first)
