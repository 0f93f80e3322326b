"""The removal of surveys: the call hides the survey, and a task deletes its responses in small commits afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Final, TypeVar

import structlog
import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.tasks.failure import run_with_restarts
from deskwire.engine.surveys.ports import SurveyReader, SurveyTransaction
from deskwire.engine.surveys.survey import Survey
from deskwire.engine.surveys.survey_lookup import find_survey

T = TypeVar("T")

log: Final = structlog.get_logger(__name__)

BATCH: Final = 500
"""Responses deleted in one commit, a few milliseconds of the writer's time."""
_RETRY_DELAY_S: Final = 1.0


class Removals:
    """Removes surveys in a nursery that outlives requests."""

    def __init__(self, nursery: trio.Nursery, store: Store[SurveyReader, SurveyTransaction]) -> None:
        self._nursery = nursery
        self._store = store

    async def clear_behind(self, removal: Awaitable[T]) -> T:
        """Wait for the write that hides a survey, start the deletion of its rows, and return the result of the write.

        Raises the exceptions of the write. Cancellation: both continue.
        """
        with trio.CancelScope(shield=True):
            result = await removal
        Context().run(self._nursery.start_soon, run_with_restarts, "surveys.removal", self.clear)
        return result

    async def clear(self) -> None:
        """Delete the rows of all removed surveys. Also called at the start, to resume after a stop."""
        while True:
            try:
                for survey in await self._store.read(lambda reader: reader.removed_surveys()):
                    while await self._store.write(_clear(survey)):
                        await trio.lowlevel.checkpoint()
                return
            except Unavailable as error:
                log.warning("survey.removal_delayed", reason=error.reason)
                await trio.sleep(_RETRY_DELAY_S)


def put_out_of_sight(tx: SurveyTransaction, project: int, survey_id: str) -> Survey:
    """Hide a survey and return it. Raises NotFound."""
    survey = find_survey(tx, project, survey_id)
    tx.remove_survey(survey.rowid)
    return survey


def _clear(survey: int) -> Callable[[SurveyTransaction], int]:
    return lambda tx: tx.clear_survey(survey, BATCH)
