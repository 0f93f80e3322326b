"""The merge of drafts drops no word of either text."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.conversations.draft_merge import has_words, merged_text
from deskwire.engine.conversations.drafts import Draft, DraftDecision, DraftKey, DraftWrite, decide_draft
from deskwire.engine.uploads.upload import Attachment

PLACE = DraftKey(1, 1, 1, "cnv_1", internal=False)
TEXTS = st.lists(st.sampled_from(["a", "b", "ab", "ä", "é", "🙂"]), max_size=6).map(" ".join) | st.text(
    alphabet="ab \n", max_size=12
)
FILES = st.lists(st.sampled_from("xyz"), unique=True).map(
    lambda ids: tuple(Attachment(each, each, "text/plain", 1) for each in ids)
)


def words(text: str) -> Counter[str]:
    return Counter(text.split())


def kept(text: str, merged: str) -> bool:
    """Return whether another text contains all words of a text, or continues it."""
    return has_words(merged, text.strip()) or words(text) <= words(merged)


@given(TEXTS, TEXTS, st.none() | TEXTS)
def test_no_word_of_either_text_is_dropped(stored: str, mine: str, base: str | None) -> None:
    merged = merged_text(stored, mine, base)
    assert kept(stored, merged)
    assert kept(mine, merged)


@given(TEXTS, TEXTS, st.none() | TEXTS)
def test_a_merge_that_is_repeated_changes_nothing(stored: str, mine: str, base: str | None) -> None:
    once = merged_text(stored, mine, base)
    assert merged_text(once, mine, base) == once


@pytest.mark.parametrize(
    ("base", "stored", "mine", "merged"),
    [
        ("Hello", "Hello there", "Dear Hello", "Dear Hello there"),
        ("one two three", "one two three four", "zero one two three", "zero one two three four"),
        ("one two three", "one two three four", "one three", "one two three four"),
        ("one two three", "one three", "one two three four", "one two three four"),
        ("I will call", "I will call you", "I can call", "I will call you\n\nI can call"),
        ("Hello", "Hello Ada", "Hello Bob", "Hello Ada\n\nHello Bob"),
        (None, "Hello Ada", "Hello", "Hello Ada"),
        (None, "Hello", "Hello Ada", "Hello Ada"),
        ("", "Hel", "Hello", "Hello"),
        (None, "Hello", "Bye", "Hello\n\nBye"),
        (None, "Hello", " \n", "Hello"),
        ("", "Hello", "", "Hello"),
        ("ab", "abY", "Xab", "abY\n\nXab"),
    ],
)
def test_two_versions_are_merged(base: str | None, stored: str, mine: str, merged: str) -> None:
    assert merged_text(stored, mine, base) == merged


def test_a_merge_of_two_long_texts_takes_no_longer_than_reading_them() -> None:
    base = "word " * 20_000
    stored, mine = f"{base}ours", f"theirs {base}"
    assert merged_text(stored, mine, base) == f"theirs {base}ours"
    one, other = "ab" * 50_000, "ba" * 50_000
    assert words(one) + words(other) == words(merged_text(one, other, "ab" * 49_999))


# A draft is deleted when it has neither a text nor a file.
STORED = st.tuples(TEXTS.map(lambda text: text or "a"), FILES) | st.tuples(
    TEXTS, FILES.map(lambda files: files or (Attachment("z", "z", "text/plain", 1),))
)


@given(STORED, TEXTS, FILES, st.integers(0, 3), st.none() | TEXTS)
def test_a_write_never_overwrites_a_version_that_its_author_has_not_seen(
    kept_draft: tuple[str, tuple[Attachment, ...]],
    text: str,
    others: tuple[Attachment, ...],
    version: int,
    base: str | None,
) -> None:
    stored, files = kept_draft
    before = Draft(PLACE, stored, files, 2, None, 5)
    decided = decide_draft(PLACE, before, DraftWrite(text, others, version, base), at=1)
    if version == 2:
        after = decided.draft
        assert (after is None) == (not text and not others)
        assert after is None or (after.text, after.attachments) == (text, others)
        return
    assert decided.draft is not None
    assert kept(stored, decided.draft.text)
    assert kept(text, decided.draft.text)
    assert {*files, *others} == {*decided.draft.attachments}
    same = (decided.draft.text, decided.draft.attachments) == (stored, files)
    assert decided.draft.version == (2 if same else max(3, version + 1))


def test_a_write_that_changes_nothing_makes_no_version() -> None:
    before = Draft(PLACE, "Hello", (), 7, 3, 5)
    for version in (0, 6, 7, 8):
        written = DraftWrite("Hello", (), version, None, 3)
        assert decide_draft(PLACE, before, written, at=9) == DraftDecision(before)


def test_versions_grow_from_one_draft_to_the_next() -> None:
    first = decide_draft(PLACE, None, DraftWrite("a", (), 0), at=100).draft
    assert first is not None
    assert decide_draft(PLACE, first, DraftWrite("", (), first.version), at=100).draft is None
    second = decide_draft(PLACE, None, DraftWrite("a", (), first.version), at=90).draft
    assert second is not None
    assert second.version > first.version
