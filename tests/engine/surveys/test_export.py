"""The CSV export, read back by the standard library's reader."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.spreadsheet import BYTE_ORDER_MARK
from deskwire.engine.surveys.definition import definition_of
from deskwire.engine.surveys.export import columns, head_line, lines
from deskwire.engine.surveys.survey import SurveyResponse
from deskwire.engine.surveys.validation.rules import VALID
from tests.support.builders import NOON

OLDER = definition_of(
    {**VALID, "questions": [{"id": "old", "type": "boolean", "title": {"en": "Old?"}}], "logic": []}
)
CHANNELS = {
    "id": "via",
    "type": "multiple_choice",
    "title": {"en": "How, then?"},
    "choices": [{"id": "m", "label": {"en": "Mail"}}, {"id": "c", "label": {"en": "=Chat"}}],
}
NUMBER = {"id": "n", "type": "number", "title": {"en": "-Number"}}
NEWER = definition_of({**VALID, "questions": [*VALID["questions"], CHANNELS, NUMBER]})
SHOWN = columns({1: OLDER, 2: NEWER})


def response(version: int = 2, user_id: str | None = None, **answers: Any) -> SurveyResponse:
    return SurveyResponse(1, "rsp_1", version, None, user_id, "en", answers, NOON)


def rows(*responses: SurveyResponse) -> list[list[str]]:
    text = head_line(SHOWN) + lines(SHOWN, responses)
    return list(csv.reader(StringIO(text.removeprefix(BYTE_ORDER_MARK), newline="")))


def test_there_is_a_column_for_each_question_the_published_ones_first() -> None:
    assert rows() == [
        [
            *("id", "createdAt", "version", "language", "userId"),
            *("Would you recommend us? [score]", "Why? [why]", "Your plan? [plan]", "How, then? [via]"),
            *("'-Number [n]", "Old? [old]"),
        ]
    ]
    assert head_line(SHOWN).startswith("\ufeffid,")


def test_answers_stand_in_their_columns_as_people_read_them() -> None:
    new = response(user_id="u1", score=3, why='Slow, and "rude"\nreally', plan="pro", via=["c", "m"], n=-2.5)
    old = response(1, old=False)
    assert [row[4:] for row in rows(new, old)[1:]] == [
        ["u1", "3", 'Slow, and "rude"\nreally', "Pro", "'=Chat; Mail", "-2.5", ""],
        ["", "", "", "", "", "", "false"],
    ]


@given(st.sampled_from(["=", "+", "-", "@", "\t=", "\r", " =", "\n@"]), st.text(max_size=20))
def test_no_text_becomes_a_formula(start: str, rest: str) -> None:
    row = rows(response(why=start + rest, user_id="@" + rest))[1]
    assert row[6] == "'" + start + rest
    assert row[4].startswith("'@")


@given(st.text(max_size=50))
def test_every_text_comes_back_from_the_file(text: str) -> None:
    row = rows(response(why=text))[1]
    assert row[6].removeprefix("'") == text.removeprefix("'")
    assert len(row) == len(SHOWN) + 5
