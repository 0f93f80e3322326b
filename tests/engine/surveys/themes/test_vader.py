"""VADER's rules give the scores that vaderSentiment gave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from deskwire.engine.surveys.insights.text_analysis.sentiment import english_lexicon, sentiment_of
from deskwire.engine.surveys.insights.text_analysis.vader import compound, vader_lexicon
from tests.support.root import ROOT

RECORDED: Final = Path(__file__).with_name("vader_scores.tsv")
FOLDER: Final = ROOT / "engine/deskwire/engine/surveys/insights/text_analysis/vader_lexicon"


def recorded() -> Iterator[tuple[str, float, int]]:
    """The recorded texts, each with its score and its sentiment."""
    for line in RECORDED.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            score, feeling, text = line.split("\t", 2)
            yield json.loads(text), float(score), int(feeling)


def test_recorded_texts_have_the_recorded_scores() -> None:
    texts = list(recorded())
    assert len(texts) > 500
    wrong = [text for text, score, _ in texts if compound(text, english_lexicon()) != score]
    assert wrong == []


def test_recorded_texts_have_the_recorded_sentiment() -> None:
    assert [text for text, _, feeling in recorded() if sentiment_of(text, "en") != feeling] == []


# The scores that vaderSentiment's own page prints (README of 3.3.2, with its lexicon alone).
@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("VADER is smart, handsome, and funny.", 0.8316),
        ("VADER is smart, handsome, and funny!", 0.8439),
        ("VADER is very smart, handsome, and funny.", 0.8545),
        ("VADER is VERY SMART, handsome, and FUNNY.", 0.9227),
        ("VADER is VERY SMART, handsome, and FUNNY!!!", 0.9342),
        ("VADER is VERY SMART, uber handsome, and FRIGGIN FUNNY!!!", 0.9469),
        ("VADER is not smart, handsome, nor funny.", -0.7424),
        ("At least it isn't a horrible book.", 0.431),
        ("The book was only kind of good.", 0.3832),
        ("The plot was good, but the characters are uncompelling and the dialog is not great.", -0.7042),
        ("Today SUX!", -0.5461),
        ("Today only kinda sux! But I'll get by, lol", 0.5249),
        ("Make sure you :) or :D today!", 0.8633),
        ("Catch utf-8 emoji such as 💘 and 💋 and 😁", 0.875),
        ("Not bad at all", 0.431),
        ("", 0.0),
        ("?!", 0.0),
    ],
)
def test_published_examples_have_their_published_scores(text: str, score: float) -> None:
    assert compound(text, vader_lexicon()) == score


@pytest.mark.parametrize(
    ("weak", "strong"), list(pairwise(["barely good", "good", "very good", "very GOOD", "very GOOD!"]))
)
def test_each_emphasis_raises_the_score(weak: str, strong: str) -> None:
    assert 0 < compound(f"it is {weak}", vader_lexicon()) < compound(f"it is {strong}", vader_lexicon())


def test_lexicon_has_every_word_once_and_its_licence_beside_it() -> None:
    lines = [line for line in (FOLDER / "words.tsv").read_text("utf-8").splitlines() if line[0] != "#"]
    assert len(lines) == len({line.split("\t")[0] for line in lines}) == len(vader_lexicon())
    assert all(-4 <= valence <= 4 for valence in vader_lexicon().values())
    assert "Copyright (c) 2016 C.J. Hutto" in (FOLDER / "LICENSE").read_text()
