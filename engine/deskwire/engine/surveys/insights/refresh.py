"""The refresh of insights: computed in the background, one refresh of a survey at a time (decisions 7, ADR 18).

A refresh reads the newest responses, works in a thread, and stores its result only if no response was removed since it
began to read: what was erased must not come back. After a restart, a refresh that was under way counts as failed; so does
that of another node whose lease is over, while one that goes on is joined.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from typing import Final

import structlog
import trio
from msgspec import Struct, field

from deskwire.engine.cluster.cluster import Alone, Cluster
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import DomainError, NotFound, Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.tasks.failure import contained
from deskwire.engine.core.values import replace
from deskwire.engine.llm.chat import ChatModel, ModelError
from deskwire.engine.surveys.definition import Definition, definition_of
from deskwire.engine.surveys.find import find_survey, find_version
from deskwire.engine.surveys.insights.compute import Computed, compute
from deskwire.engine.surveys.insights.insights import Insights, alert_times, theme_ids
from deskwire.engine.surveys.insights.progress import Refresh
from deskwire.engine.surveys.insights.sample import Sample
from deskwire.engine.surveys.ports import SurveyReader, SurveyTransaction
from deskwire.engine.surveys.survey import Response, ResponseFilter, Survey

log: Final = structlog.get_logger(__name__)

RESPONSES_MAX: Final = 20_000
"""Responses that are read at most, the newest."""
CHARACTERS_MAX: Final = 32_000_000
"""Characters of their answers; what is older than where they are reached is not read."""
RUNNING_MAX: Final = 100
"""Refreshes under way or waiting at most, over all projects."""
_AT_ONCE: Final = 2
_PAGE: Final = 200
_TRIES: Final = 3
"""Attempts while responses keep being removed."""
_TELL_S: Final = 2.0
"""Time between two notes of the progress for other nodes."""
_LOOK_S: Final = 5.0
"""Time between two looks for refreshes that nodes have left."""
_READ: Final = 0.3
"""Progress when the responses are read."""
_INTERRUPTED: Final = "The service was stopped in between; start it again."


class _Run(Struct, eq=False):
    """A refresh under way. `begun` is set when it is stored, or `refused` says why it is not; or it goes on `elsewhere`."""

    survey: Survey
    refresh: Refresh
    begun: trio.Event = field(default_factory=trio.Event)
    refused: DomainError | None = None
    elsewhere: Refresh | None = None

    def at(self, progress: float) -> None:
        """Note the share that is done."""
        self.refresh = replace(self.refresh, progress=progress)


class Refreshes:
    """Runs refreshes in a nursery that no request owns.

    Args:
        model: finds themes and writes the summary; without one they come from the words themselves.
        cluster: this node among those that refresh insights.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        store: Store[SurveyReader, SurveyTransaction],
        clock: Clock,
        model: ChatModel | None,
        cluster: Cluster | None = None,
    ) -> None:
        self._cluster = cluster or Alone()
        self._nursery = nursery
        self._store = store
        self._clock = clock
        self._model = model
        self._slots = trio.Semaphore(_AT_ONCE)
        self._threads = trio.CapacityLimiter(_AT_ONCE)
        self._running: dict[int, _Run] = {}

    async def keep_recovering(self) -> None:
        """End the refreshes of nodes that are gone as failed, until cancelled; a duty."""
        while True:
            try:
                await self.recover()
            except Unavailable as refusal:
                log.warning("insights.not_recovered", reason=refusal.reason)
            await trio.sleep(_LOOK_S)

    async def recover(self) -> None:
        """End the refreshes that an earlier process, or a node that is gone, left under way as failed."""
        now = self._clock()
        ended = await self._store.write(lambda tx: tx.fail_refreshes(_INTERRUPTED, now))
        if ended:
            log.info("insights.refreshes_interrupted", count=ended)

    async def start(self, survey: Survey) -> Refresh:
        """Begin a refresh, or join the one that is under way; return its state.

        Raises NotFound if the survey is gone, Unavailable when too many are under way. Cancellation: it goes on.
        """
        run = self._running.get(survey.rowid)
        if run is None:
            if len(self._running) >= RUNNING_MAX:
                raise Unavailable(
                    "Too many insights are being refreshed.", code="refresh_busy", retry_after_s=5
                )
            run = self._running[survey.rowid] = _Run(survey, Refresh("running", self._clock()))
            Context().run(self._nursery.start_soon, self._run, run)
        await run.begun.wait()
        if run.refused is not None:
            raise run.refused
        return run.elsewhere or run.refresh

    async def latest(self, survey: Survey) -> Refresh | None:
        """Return the state of the running refresh, or of the last one; None if there was none."""
        run = self._running.get(survey.rowid)
        if run is not None and run.begun.is_set() and run.refused is None:
            return run.elsewhere or run.refresh
        # Read only now: the end is stored before the run leaves `_running`.
        stored, goes_on = await self._store.read(self._stored(survey))
        if stored is not None and stored.status == "running" and not goes_on:  # its end could not be stored
            return replace(stored, status="failed", error=_INTERRUPTED)
        return stored

    def _stored(self, survey: Survey) -> Callable[[SurveyReader], tuple[Refresh | None, bool]]:
        mine = self._cluster.node.incarnation
        return lambda reader: (
            reader.survey_refresh(survey.rowid),
            reader.refresh_goes_on(survey.rowid, mine),
        )

    async def _run(self, run: _Run) -> None:
        def tell(failure: BaseException) -> None:
            log.error("insights.refresh_failed", survey=run.survey.id, exc_info=failure)

        with contained(tell):
            await self._carry_out(run)

    async def _carry_out(self, run: _Run) -> None:
        try:
            run.elsewhere = await self._store.write(self._begun(run))
            run.begun.set()
            if run.elsewhere is None:
                await self._work(run)
        except (NotFound, Unavailable) as error:
            log.warning("insights.refresh_not_stored", survey=run.survey.id, reason=error.reason)
            run.refused = error
        finally:
            del self._running[run.survey.rowid]
            run.begun.set()

    def _begun(self, run: _Run) -> Callable[[SurveyTransaction], Refresh | None]:
        mine, refresh = self._cluster.node.incarnation, run.refresh

        def begin(tx: SurveyTransaction) -> Refresh | None:
            """Store that it has begun, or return the state of the one that another node runs."""
            if tx.refresh_goes_on(run.survey.rowid, mine):
                return tx.survey_refresh(run.survey.rowid)
            _note(tx, run.survey, refresh, mine)
            return None

        return begin

    async def _work(self, run: _Run) -> None:
        async with trio.open_nursery() as nursery:
            if self._cluster.node.incarnation:
                nursery.start_soon(self._tell_progress, run)
            failed = await self._outcome(run)
            nursery.cancel_scope.cancel()
        if failed is not None:
            await self._store.write(lambda tx: _note(tx, run.survey, failed))

    async def _tell_progress(self, run: _Run) -> None:
        """Store the progress now and then, for those who ask other nodes."""
        while True:
            await trio.sleep(_TELL_S)
            mine, refresh = self._cluster.node.incarnation, run.refresh
            with suppress(NotFound, Unavailable):
                await self._store.write(_telling(run.survey, refresh, mine))

    async def _outcome(self, run: _Run) -> Refresh | None:
        """Compute and store the insights; return the refresh to store instead if that fails."""
        reason = "A bug; the log has the details."
        try:
            async with self._slots:
                for _ in range(_TRIES):
                    if await self._attempt(run):
                        return None
            reason = "Responses were removed again and again meanwhile; start it again."
        except ModelError as error:
            log.warning("insights.model_failed", survey=run.survey.id, reason=str(error))
            reason = f"The model failed: {error}"
        except Unavailable as error:
            log.warning("insights.refresh_failed", survey=run.survey.id, reason=error.reason)
            reason = error.detail
        except NotFound:
            raise
        except Exception:  # the task's top: a refresh's bug is told to who asked, and ends nothing else
            log.exception("insights.refresh_failed", survey=run.survey.id)
        return replace(run.refresh, status="failed", ended_at=self._clock(), error=reason)

    async def _attempt(self, run: _Run) -> bool:
        """Read, compute and store; False if responses were removed meanwhile."""
        survey = await self._store.read(lambda reader: find_survey(reader, run.survey.project, run.survey.id))
        sample = await self._sample(survey, run)
        stored = await self._store.read(lambda reader: reader.survey_insights(survey.rowid))
        now = self._clock()
        computed = await compute(
            sample,
            self._model,
            alert_times(stored),
            theme_ids(stored),
            now,
            threads=self._threads,
            progress=lambda share: run.at(_READ + share * (1 - _READ)),
        )
        done = replace(
            run.refresh,
            status="done",
            progress=1.0,
            ended_at=self._clock(),
            responses=len(sample.responses),
            scores=computed.scores,
            source=computed.source,
        )
        return await self._store.write(lambda tx: _store(tx, survey, computed, done, now))

    async def _sample(self, survey: Survey, run: _Run) -> Sample:
        definitions = await self._definitions(survey)
        responses: list[Response] = []
        everything, goal, characters = ResponseFilter(), min(survey.responses, RESPONSES_MAX), 0
        while len(responses) < RESPONSES_MAX and characters < CHARACTERS_MAX:
            page = await self._store.read(
                _page(survey.rowid, everything, responses[-1].rowid if responses else None)
            )
            # One to a version that was published meanwhile is left to the next refresh.
            responses += [response for response in page if response.version in definitions]
            characters += sum(_size(response) for response in page)
            run.at(_READ * min(1.0, len(responses) / max(goal, 1)))
            if len(page) < _PAGE:
                break
        return Sample(definitions, survey.version, responses)

    async def _definitions(self, survey: Survey) -> dict[int, Definition]:
        definitions: dict[int, Definition] = {}
        for number in range(1, survey.version + 1):
            definitions[number] = await self._store.read(_version(survey, number))
        return definitions


def _note(tx: SurveyTransaction, survey: Survey, refresh: Refresh, incarnation: int = 0) -> None:
    find_survey(tx, survey.project, survey.id)
    tx.put_refresh(survey.rowid, refresh, incarnation)


def _telling(survey: Survey, refresh: Refresh, incarnation: int) -> Callable[[SurveyTransaction], None]:
    def tell(tx: SurveyTransaction) -> None:
        stored = tx.survey_refresh(survey.rowid)
        if stored is not None and stored.status == "running":
            _note(tx, survey, refresh, incarnation)

    return tell


def _store(tx: SurveyTransaction, survey: Survey, computed: Computed, done: Refresh, now: int) -> bool:
    if find_survey(tx, survey.project, survey.id).erasures != survey.erasures:
        return False
    tx.put_insights(survey.rowid, Insights(computed.parts, computed.source, now))
    tx.put_refresh(survey.rowid, done)
    return True


def _page(
    survey: int, filter_: ResponseFilter, before: int | None
) -> Callable[[SurveyReader], list[Response]]:
    return lambda reader: list(reader.survey_responses(survey, filter_, before, _PAGE))


def _version(survey: Survey, number: int) -> Callable[[SurveyReader], Definition]:
    return lambda reader: definition_of(find_version(reader, survey, number).definition)


def _size(response: Response) -> int:
    return sum(len(answer) for answer in response.answers.values() if isinstance(answer, str))
