"""A conversion goes on after any record, and an import accepts all lines that it writes."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.importing.records import RefusedLine
from deskwire.http.api.input.ndjson import NdjsonLine
from deskwire.http.resources.imports.lines import read_line
from tests.commands.converting.converted import NOW, converted, converted_bytes
from tests.commands.converting.shapes import (
    ZENDESK_USERS,
    chatwoot_conversation,
    chatwoot_messages,
    chatwoot_rows,
    intercom_conversation,
    zendesk_ticket,
)
from tests.support.properties import budget

SHAPES: dict[str, list[dict[str, Any]]] = {
    "zendesk": [zendesk_ticket(), *ZENDESK_USERS, {"ticket_events": [{"ticket_id": 1, "child_events": []}]}],
    "intercom": [intercom_conversation()],
    "chatwoot": [chatwoot_conversation(), chatwoot_messages(), *chatwoot_rows()],
}
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        -1,
        10**30,
        1e308,
        "",
        " ",
        "x" * 70_000,
        "\0",
        "\ud800",
        [],
        [None],
        {},
        {"id": {}},
        [{"id": 1}],
        10**25,
        1e400,
        "&#" + "9" * 5_000 + ";",
        '<a x="' * 100,
        '{"deleted": true, "n": ' + "9" * 5_000 + "}",
        "[" * 20_000,
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59-14:00",
    ]
)
NUMBERS = ["9" * 4_301, "-" + "9" * 5_000, "1e999", "NaN", "-Infinity", "1" * 5_000 + ".5"]
"""Numbers that JSON can have, and Python's own ones; as they stand in a file."""


def places(value: Any, way: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the ways to all values in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way] * bool(way) + [found for key, each in inner for found in places(each, (*way, key))]


@pytest.mark.parametrize("source", SHAPES)
@budget(300)
@given(data=st.data())
def test_odd_value_anywhere_stops_no_conversion_and_its_output_is_importable(
    source: str, data: st.DataObject
) -> None:
    records = json.loads(json.dumps(SHAPES[source]))
    for _ in range(data.draw(st.integers(1, 3))):
        way = data.draw(st.sampled_from(places(records)))
        inner = records
        for step in way[:-1]:
            inner = inner[step]
        inner[way[-1]] = deepcopy(data.draw(ODD))  # or one would come to be within itself
    done = converted(source, *records)
    for number, line in enumerate(done.output.splitlines(), 1):
        assert not isinstance(read_line(NdjsonLine(number, line), NOW), RefusedLine)


@pytest.mark.parametrize("source", SHAPES)
@pytest.mark.parametrize("number", NUMBERS)
def test_number_of_any_length_anywhere_stops_no_conversion(source: str, number: str) -> None:
    expected = converted(source, *SHAPES[source])
    for way in places(SHAPES[source]):
        records = json.loads(json.dumps(SHAPES[source]))
        inner = records
        for step in way[:-1]:
            inner = inner[step]
        inner[way[-1]] = "@number@"
        text = "\n".join(map(json.dumps, records)).replace('"@number@"', number)
        done = converted_bytes(source, text.encode())
        assert "unreadable" not in done.notes, way
    plain = json.dumps(SHAPES[source]) + f'\n{{"odd": {number}}}\n'
    assert converted_bytes(source, plain.encode()).output == expected.output


def test_a_customers_long_number_is_kept_as_text() -> None:
    digits = "1" + "0" * 5_000
    text = json.dumps(chatwoot_conversation(custom_attributes={"order": "@"})).replace('"@"', digits)
    done = converted_bytes("chatwoot", text.encode())
    assert done.conversations[0]["attributes"]["order"] == digits
    snowflake = chatwoot_conversation(custom_attributes={"order": 1234567890123456789})
    assert converted("chatwoot", snowflake).conversations[0]["attributes"]["order"] == 1234567890123456789
