"""The merges of the service and of the desk drop no word of the same texts."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.conversations.draft_merge import has_words, merged_text
from tests.support.desk_functions import desk_results

PIECES = (
    "ok", "book", "my", "left", "left.", "It", "don't", "don", "1.5", "1", "caf\u00e9", "cafe\u0301", "cafe", "\u00e4rger",
    "\u0434\u043e\u0441\u0442\u0430\u0432\u043a\u0430", "\U0001d538", "\U0001f642", "...", "ada@example.org", "ada", "a", "ab",
)  # fmt: skip
SPACES = (" ", " ", " ", "\n", "\n\n", ", ", "")


class Vector(NamedTuple):
    base: str
    mine: str
    theirs: str


def text_of(chance: random.Random, longest: int) -> str:
    return "".join(chance.choice(PIECES) + chance.choice(SPACES) for _ in range(chance.randrange(longest)))


def changed(chance: random.Random, base: str) -> str:
    """Return the base with one part replaced, as by typing."""
    start = chance.randint(0, len(base))
    end = chance.randint(start, min(len(base), start + 8))
    return base[:start] + text_of(chance, 3) + base[end:]


def vectors(count: int) -> list[Vector]:
    chance = random.Random(98)
    found = []
    for _ in range(count):
        base = text_of(chance, 6)
        mine, theirs = (changed(chance, base) if chance.random() < 0.7 else text_of(chance, 6) for _ in "ab")
        found.append(Vector(base, mine, theirs))
    return found


def words(text: str) -> set[str]:
    """Return the words of a text, without those of punctuation alone."""
    return {each for each in text.split() if each.strip(".,")}


def paragraphs(text: str) -> list[str]:
    return [each.strip() for each in re.split(r"\n\s*\n", text) if each.strip()]


def dropped(text: str, merged: str, may_go: set[str]) -> set[str]:
    """Return the words of a text that a merge lacks, except the last word of a paragraph that was continued."""
    lost: set[str] = set()
    for paragraph in paragraphs(text):
        if not any(each.startswith(paragraph) for each in paragraphs(merged)):
            bare = {each.strip(".,") for each in words(merged)} | words(merged)
            lost |= {
                each
                for each in words(paragraph) - may_go
                if each not in bare and each.strip(".,") not in bare
            }
    return lost


def by_desk(function: str, given: Sequence[Sequence[str]]) -> list[Any]:
    """Return the results of a function of the desk's module for each list of arguments."""
    return desk_results("inbox/draft-merge.js", function, given)


TEXTS = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(SPACES)), max_size=6).map(
    lambda parts: "".join(piece + space for piece, space in parts)
)


@given(TEXTS, TEXTS, st.none() | TEXTS)
def test_the_service_drops_no_word(stored: str, mine: str, base: str | None) -> None:
    merged = merged_text(stored, mine, base)
    assert dropped(stored, merged, set()) == set()
    assert dropped(mine, merged, set()) == set()
    assert merged_text(merged, mine, base) == merged


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_desk_and_service_drop_no_word_of_the_same_texts() -> None:
    """The desk applies deletions of one side; the service does not, because its base may be older."""
    given = vectors(3_000)
    for each, desk in zip(given, by_desk("merge", given), strict=True):
        service = merged_text(each.theirs, each.mine, each.base)
        for text, other in ((each.mine, each.theirs), (each.theirs, each.mine)):
            assert dropped(text, service, set()) == set(), (each, service)
            assert dropped(text, desk, words(each.base) - words(other)) == set(), (each, desk)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_desk_and_service_agree_on_whether_a_text_has_words() -> None:
    chance = random.Random(7)
    pairs = [(text_of(chance, 8), text_of(chance, 3).strip()) for _ in range(3_000)]
    pairs = [(text, words) for text, words in pairs if words]
    assert by_desk("containsWords", pairs) == [has_words(text, words) for text, words in pairs]


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("my book", "ok", False),
        ("ok my book", "ok", True),
        ("I don't", "don", False),
        ("left.", "left", True),
        ("cafe\u0301", "cafe", True),  # it begins the paragraph, as if it was written further
        ("a cafe\u0301", "cafe", False),
        ("a hello world", "a hello wor", True),
        ("ada@example.org", "example", False),
        ("a" * 5_000 + " b", "a" * 2_000, True),
        ("b" + "a" * 5_000, "a" * 2_000, False),
    ],
)
def test_words_are_found_as_words_of_their_own(text: str, words: str, found: bool) -> None:
    assert has_words(text, words) is found
