"""The state of a refresh of insights (decisions 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.surveys.insights.insights import Source

RefreshStatus = Literal["running", "done", "failed"]


class Refresh(Struct, frozen=True):
    """A refresh that is running, done or failed. Times are in milliseconds.

    Args:
        progress: the share that is done, 0 to 1.
        error: the reason for which it failed.
        responses: how many responses went into the insights.
        scores: as `scores.scores_view` gives them.
        source: of the themes.
    """

    status: RefreshStatus
    started_at: int
    progress: float = 0.0
    ended_at: int | None = None
    error: str | None = None
    responses: int | None = None
    scores: Sequence[Mapping[str, Any]] = ()
    source: Source | None = None


def refresh_view(refresh: Refresh) -> dict[str, Any]:
    """Return the refresh as the API shows it."""
    return {
        "status": refresh.status,
        "progress": round(refresh.progress, 2),
        "startedAt": iso(refresh.started_at),
        "endedAt": iso_or_none(refresh.ended_at),
        "error": refresh.error,
        "responses": refresh.responses,
        "scores": [dict(each) for each in refresh.scores],
        "source": refresh.source,
    }
