"""Folded substrings: SQLite and PostgreSQL find a part in exactly the texts that contain it after folding."""

# ruff: noqa: RUF001  # they are real texts

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.folding import FOLDING, fold
from deskwire.storage.dialect import POSTGRES, SQLITE, Dialect
from deskwire.storage.folded_patterns import contains, inverse
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.sqlite.database import connect_writer
from tests.support.postgres import fresh_database
from tests.support.properties import budget

LETTERS = (
    "aAäÄáâåæÆªａＡ𝐚eéèsSßẞﬁﬀﬃfiIıİjĳkK\u212a\u017flŁłnÑoOøœ№tT™1①⑩⑫⒈0½ .-–'’%_![]^$(){}|*+?\\/"
    "дДоОёЁеЕйЙиИїЇіІўσςΣάαΑᾳΐι"
    "אבגﭏשׁאאלعربيةـﷺلﻻكاأآ"
    "कख़ख\u093cक्षि"
    "กำํา่東京都ガｶﾞかが㎏㌔㍿"
    "한하ᄒㅎᅡㅏᆫ나는흔을㉮아안"
    "\u0300\u0301\u0306\u0308\u0323\u0345\u200b\u200c\u200d\u00ad\u2060\ufe0f\u0640\u05b0\u064b\u3164\n\t👩❤"
)
texts = st.text(
    st.sampled_from(LETTERS) | st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12
)
near = st.text(st.sampled_from(LETTERS), max_size=8)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Any]:
    """Yield a connection to PostgreSQL with a new table."""
    with fresh_database() as url:
        connection = BlockingConnection(Database(url, "test"), "lone")
        connection.execute('CREATE TABLE folded (id bigint, text text COLLATE "C")')
        yield connection
        connection.close()


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """Yield a connection to SQLite with a new table."""
    path = tmp_path_factory.mktemp("folded") / "texts.sqlite3"
    with closing(connect_writer(Path(path))) as connection:
        connection.execute("CREATE TABLE folded (id INTEGER, text TEXT)")
        yield connection


def found(connection: Any, dialect: Dialect, stored: list[str], part: str) -> list[str]:
    """Return the texts in which a database finds a part."""
    connection.execute("DELETE FROM folded")
    for number, text in enumerate(stored):
        connection.execute("INSERT INTO folded VALUES (?, ?)", (number, text))
    condition, values = contains(dialect, "text", part)
    rows = connection.execute(f"SELECT id FROM folded WHERE {condition} ORDER BY id", values)
    return [stored[number] for (number,) in rows.fetchall()]


def check(postgres: Any, sqlite: sqlite3.Connection, stored: list[str], part: str) -> list[str]:
    """Check that both databases find the texts of the definition, and return them."""
    wanted = [text for text in stored if fold(part) and fold(part) in fold(text)]
    assert found(sqlite, SQLITE, stored, part) == wanted, part
    assert found(postgres, POSTGRES, stored, part) == wanted, part
    return wanted


@given(
    stored=st.lists(texts | near, min_size=1, max_size=5),
    part=texts | near,
    start=st.integers(0, 11),
    size=st.integers(1, 6),
)
@budget(250)
def test_both_databases_find_a_part_in_the_same_texts(
    postgres: Any, sqlite: sqlite3.Connection, stored: list[str], part: str, start: int, size: int
) -> None:
    check(postgres, sqlite, [*stored, f"a{part}b"], part)
    some = stored[0][start % (len(stored[0]) or 1) :][:size]
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        check(postgres, sqlite, stored, unicodedata.normalize(form, some))
    for other in (some.upper(), some.title(), some.casefold(), fold(some)):
        check(postgres, sqlite, stored, other)


@pytest.mark.parametrize(
    ("stored", "part"),
    [
        ("Доставка завтра", "доставка"),
        ("ЁЛКА и Йод", "елка"),
        ("ЁЛКА и Йод", "и\u0306од"),
        ("Ärger", "ärger"),
        ("Ärger", "arger"),
        ("Ελλάδα", "ελλάδα"),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσεύς"),
        ("cafe\u0301", "café"),
        ("café", "cafe\u0301"),
        ("Straße", "STRASSE"),
        ("STRASSE", "straße"),
        ("ﬁnance", "fin"),
        ("oﬃce", "off"),
        ("oﬃce", "ffi"),
        ("Ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
        ("İstanbul", "istanbul"),
        ("ISPARTA ısmarla", "ısparta Ismarla"),
        ("مُحَمَّد", "محمد"),
        ("كـــتاب", "كتاب"),
        ("شָלום שָׁלוֹם", "שלום"),
        ("می\u200cخواهم", "میخواهم"),
        ("क़लम", "क\u093cलम"),
        ("한국어", "하"),
        ("한국어", unicodedata.normalize("NFD", "한국")),
        (unicodedata.normalize("NFD", "한국어"), "한국"),
        ("order ⑫⑬", "121"),
        ("ﷺ", "الله"),
        ("100% sure_thing [a-z]*", "% SURE_thing [A"),
        ("a\\b^c", "\\B^"),
    ],
)
def test_a_text_is_found_as_people_write_it(
    postgres: Any, sqlite: sqlite3.Connection, stored: str, part: str
) -> None:
    assert check(postgres, sqlite, [stored, "something else"], part) == [stored]


def test_a_part_that_is_folded_to_nothing_is_in_no_text(postgres: Any, sqlite: sqlite3.Connection) -> None:
    assert check(postgres, sqlite, ["a", "\u200d", ""], "\u200d\u0301") == []


@pytest.mark.thorough
def test_the_table_has_everything_that_is_folded_to_something_else() -> None:
    table = inverse()
    known = {*"".join(table.same.values()), *table.expanded}
    for code in range(0x80, 0x110000):
        folded, character = FOLDING[code], chr(code)
        if folded and folded != character and not 0xAC00 <= code < 0xD7A4:
            assert character in known, hex(code)
