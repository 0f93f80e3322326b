"""Text folding: which texts are one, and which are not."""

# ruff: noqa: RUF001  # they are real texts

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.folding import address_key, duplicate_key, duplicate_range, fold, fold_name

ALIKE = [
    ("Доставка", "доставка"),
    ("Ёлка", "елка"),
    ("Йод", "и\u0306од"),
    ("Ärger", "a\u0308rger"),
    ("Ελλάδα", "ελλάδα"),
    ("ΟΔΟΣ", "οδός"),
    ("Straße", "STRASSE"),
    ("ﬁnance", "finance"),
    ("Ｄｅｓｋ　１", "desk 1"),
    ("İstanbul", "istanbul"),
    ("\u0131şık", "ISIK"),
    ("ﬀ", "FF"),
    ("مُحَمَّد", "محمد"),
    ("كـتاب", "كتاب"),
    ("שָׁלוֹם", "שלום"),
    ("می\u200cخواهم", "میخواهم"),
    ("क़लम", "क\u093cलम"),
    ("한국", unicodedata.normalize("NFD", "한국")),
    ("ｶﾞ", "ガ"),
    ("don’t", "don't"),
    ("Æsir", "AESIR"),
    ("❤\ufe0f", "❤"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_texts_that_read_alike_are_folded_to_one(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("one", "other"), [("か", "が"), ("कि", "की"), ("ก่", "ก้"), ("a", "а"), ("1", "l"), ("東", "东")]
)
def test_texts_that_differ_in_a_letter_or_in_script_stay_different(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@given(st.text(max_size=40))
def test_folding_is_done_once_and_takes_any_form_of_a_text(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    for form in ("NFC", "NFD"):
        assert sorted(fold(unicodedata.normalize(form, text))) == sorted(fold(text))


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_part_of_a_text_is_a_part_of_the_folded_text(one: str, other: str) -> None:
    assert fold(one + other) == fold(one) + fold(other)


def test_a_name_has_single_blanks_and_is_never_folded_to_nothing() -> None:
    assert fold_name("  Über\u2003Uns ") == "uber uns"
    assert fold_name("\u0301") == "\u0301"


def test_duplicate_is_in_the_range_of_its_name_and_no_longer_one() -> None:
    folded, low, high = duplicate_range("sales")
    assert folded == "sales"
    assert low < duplicate_key("sales", "team_1") < high
    assert not low < "sales emea" < high
    assert not low < "sales" < high


def test_an_address_keeps_its_accents() -> None:
    assert address_key("Ada@Example.ORG") == address_key("ada@example.org")
    assert address_key("ÄRZTE@example.org") == address_key("a\u0308rzte@example.org")
    assert address_key("ada@straße.example") != address_key("ada@strasse.example")
    assert address_key("ada@examplé.org") != address_key("ada@example.org")
    assert address_key("mike@\u0131mail.example") != address_key("mike@imail.example")
