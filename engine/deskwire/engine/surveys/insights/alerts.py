"""Alerts for a dropped score, and for a growing number of complaints about a theme (decisions 7).

They compare the last 7 days with the 28 days before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from deskwire.engine.core.clock import iso
from deskwire.engine.surveys.insights.comments import Comment
from deskwire.engine.surveys.insights.sample import Sample
from deskwire.engine.surveys.insights.scores import drop_threshold, score_of, scoring_of
from deskwire.engine.surveys.insights.themes import Theme

Severity = Literal["info", "warning", "critical"]
"""The severity of an alert. Deskwire's own alerts are `warning` or `critical`; a backend may use any."""

DAY_MS: Final = 86_400_000
RECENT_DAYS: Final = 7
BEFORE_DAYS: Final = 28
RESPONSES_MIN: Final = 20
"""Minimum responses or comments in each of the two periods."""
MENTIONS_MIN: Final = 5
SPIKE: Final = 2.0
"""The growth of a negative theme's share of the comments that raises an alert."""
SEVERE: Final = 2.0
"""The multiple of the threshold at which an alert becomes critical."""


def alerts(
    sample: Sample,
    themes: Sequence[Theme],
    comments: Sequence[Comment],
    before: Mapping[str, str],
    now: int,
) -> list[dict[str, Any]]:
    """Return the alerts `{id, severity, message, createdAt}` at `now` (ms).

    Args:
        before: the `createdAt` of stored alerts, by id; they keep that time.
    """
    raised = [*_drop(sample, now), *_spikes(themes, comments, now)]
    return [{**alert, "createdAt": before.get(alert["id"], iso(now))} for alert in raised]


def _drop(sample: Sample, now: int) -> Iterator[dict[str, Any]]:
    question = sample.score_question
    if question is None:
        return
    recent: list[int] = []
    earlier: list[int] = []
    for response, answer in zip(sample.responses, sample.answers(question), strict=True):
        if answer is not None:
            age = now - response.created_at
            (recent if age < RECENT_DAYS * DAY_MS else earlier if _before(age) else []).append(answer)
    if min(len(recent), len(earlier)) < RESPONSES_MIN:
        return
    was, is_now = score_of(question, earlier), score_of(question, recent)
    assert was is not None
    assert is_now is not None
    drop, threshold = was - is_now, drop_threshold(question)
    if drop >= threshold:
        name = scoring_of(question).name
        message = f"The {name} of the last {RECENT_DAYS} days is {is_now:g}, down from {was:g} in the {BEFORE_DAYS} days before."
        yield _alert("score_drop", drop / threshold, message)


def _spikes(themes: Sequence[Theme], comments: Sequence[Comment], now: int) -> Iterator[dict[str, Any]]:
    recent, earlier = _counts(comments, now)
    if min(recent, earlier) < RESPONSES_MIN:
        return
    for theme in themes:
        new, old = _counts(theme.mentions, now)
        if theme.sentiment != "negative" or new < MENTIONS_MIN:
            continue
        growth = (new / recent) / max(old / earlier, 1 / earlier)
        if growth >= SPIKE:
            message = f"“{theme.title}” is in {new} of {recent} comments of the last {RECENT_DAYS} days, before in {old} of {earlier}."
            yield _alert(f"theme_spike:{theme.id}", growth / SPIKE, message)


def _counts(comments: Sequence[Comment], now: int) -> tuple[int, int]:
    recent = sum(now - comment.at < RECENT_DAYS * DAY_MS for comment in comments)
    return recent, sum(_before(now - comment.at) for comment in comments)


def _before(age: int) -> bool:
    return RECENT_DAYS * DAY_MS <= age < (RECENT_DAYS + BEFORE_DAYS) * DAY_MS


def _alert(alert_id: str, times: float, message: str) -> dict[str, Any]:
    severity: Severity = "critical" if times >= SEVERE else "warning"
    return {"id": alert_id, "severity": severity, "message": message}
