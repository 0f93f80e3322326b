"""The removal of surveys: out of sight at once, then their responses in small commits after the call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Final, TypeVar

import structlog
import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.tasks.failure import run_with_restarts
from deskwire.engine.surveys.find import find_survey
from deskwire.engine.surveys.ports import SurveyReader, SurveyTransaction
from deskwire.engine.surveys.survey import Survey

T = TypeVar("T")

log: Final = structlog.get_logger(__name__)

BATCH: Final = 500
"""Responses that one commit deletes; a few milliseconds of the writer's time."""
_RETRY_S: Final = 1.0


class Removals:
    """The removal of surveys, in a nursery that no request owns."""

    def __init__(self, nursery: trio.Nursery, store: Store[SurveyReader, SurveyTransaction]) -> None:
        self._nursery = nursery
        self._store = store

    async def clear_behind(self, removal: Awaitable[T]) -> T:
        """Wait for the write that puts a survey out of sight, and clear behind it what belongs to the survey; return what the write does.

        Raises what the write raises. Cancellation: both go on.
        """
        with trio.CancelScope(shield=True):
            result = await removal
        Context().run(self._nursery.start_soon, run_with_restarts, "surveys.removal", self.clear)
        return result

    async def clear(self) -> None:
        """Clear all surveys that are out of sight; called at the start, too, for those that a stop has cut short."""
        while True:
            try:
                for survey in await self._store.read(lambda reader: reader.removed_surveys()):
                    while await self._store.write(_clear(survey)):
                        await trio.lowlevel.checkpoint()
                return
            except Unavailable as error:
                log.warning("survey.removal_delayed", reason=error.reason)
                await trio.sleep(_RETRY_S)


def put_out_of_sight(tx: SurveyTransaction, project: int, survey_id: str) -> Survey:
    """Have nobody find a survey any more; return what it was. Raises NotFound."""
    survey = find_survey(tx, project, survey_id)
    tx.remove_survey(survey.rowid)
    return survey


def _clear(survey: int) -> Callable[[SurveyTransaction], int]:
    return lambda tx: tx.clear_survey(survey, BATCH)
