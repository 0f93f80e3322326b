"""Refreshes of insights in the background, one at a time for each survey (decisions 7, ADR 18).

A refresh reads the newest responses, computes in a thread, and stores its result only if no response was erased since
it began to read, so that erased texts can't return. A refresh fails if its process restarts or the lease of its node
expires; a request joins a refresh that another node runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from typing import Final

import structlog
import trio
from msgspec import Struct, field

from deskwire.engine.cluster.cluster import Cluster, SingleNode
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import DomainError, NotFound, Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.tasks.failure import contain_failures
from deskwire.engine.core.values import replace
from deskwire.engine.llm.chat import ChatModel, ModelError
from deskwire.engine.surveys.definition import SurveyDefinition, definition_of
from deskwire.engine.surveys.insights.compute import Computed, compute
from deskwire.engine.surveys.insights.insights import Insights, Refresh, alert_times, theme_ids
from deskwire.engine.surveys.insights.sample import Sample
from deskwire.engine.surveys.ports import SurveyReader, SurveyTransaction
from deskwire.engine.surveys.survey import ResponseFilter, Survey, SurveyResponse
from deskwire.engine.surveys.survey_lookup import find_survey, find_version

log: Final = structlog.get_logger(__name__)

RESPONSES_MAX: Final = 20_000
"""Maximum responses, the newest ones."""
CHARACTERS_MAX: Final = 32_000_000
"""Maximum characters of their answers; older responses are not read."""
RUNNING_MAX: Final = 100
"""Maximum running and queued refreshes over all projects."""
_CONCURRENT_MAX: Final = 2
_PAGE_SIZE: Final = 200
_ATTEMPTS_MAX: Final = 3
"""Attempts if responses are erased during each of them."""
_PROGRESS_INTERVAL_S: Final = 2.0
"""Interval at which the progress is stored for other nodes."""
_RECOVERY_INTERVAL_S: Final = 5.0
"""Interval of the search for refreshes of failed nodes."""
_READ: Final = 0.3
"""Progress after the responses are read."""
_INTERRUPTED: Final = "The service was stopped in between; start it again."


class _Run(Struct, eq=False):
    """A running refresh.

    Args:
        begun: set when the refresh is stored, or its start has failed.
        refused: the error of the start.
        elsewhere: the refresh that another node already runs.
    """

    survey: Survey
    refresh: Refresh
    begun: trio.Event = field(default_factory=trio.Event)
    refused: DomainError | None = None
    elsewhere: Refresh | None = None

    def at(self, progress: float) -> None:
        """Set the completed share, 0 to 1."""
        self.refresh = replace(self.refresh, progress=progress)


class Refreshes:
    """Runs refreshes in a nursery that outlives requests.

    Args:
        model: finds themes and writes the summary; None for the built-in text analysis.
        cluster: this node and the others that refresh insights.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        store: Store[SurveyReader, SurveyTransaction],
        clock: Clock,
        model: ChatModel | None,
        cluster: Cluster | None = None,
    ) -> None:
        self._cluster = cluster or SingleNode()
        self._nursery = nursery
        self._store = store
        self._clock = clock
        self._model = model
        self._slots = trio.Semaphore(_CONCURRENT_MAX)
        self._threads = trio.CapacityLimiter(_CONCURRENT_MAX)
        self._running: dict[int, _Run] = {}

    async def keep_recovering(self) -> None:
        """Mark refreshes of failed nodes as failed, until cancelled. Only the leader runs this."""
        while True:
            try:
                await self.recover()
            except Unavailable as refusal:
                log.warning("insights.not_recovered", reason=refusal.reason)
            await trio.sleep(_RECOVERY_INTERVAL_S)

    async def recover(self) -> None:
        """Mark refreshes of earlier processes and failed nodes as failed."""
        now = self._clock()
        ended = await self._store.write(lambda tx: tx.fail_refreshes(_INTERRUPTED, now))
        if ended:
            log.info("insights.refreshes_interrupted", count=ended)

    async def start(self, survey: Survey) -> Refresh:
        """Start a refresh or join the running one; return its state.

        Raises NotFound if the survey was deleted, Unavailable if too many are running. Cancellation: the refresh continues.
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
        # Read after the look at `_running`: a refresh stores its end before it leaves there.
        stored, goes_on = await self._store.read(self._stored(survey))
        if stored is not None and stored.status == "running" and not goes_on:  # the end could not be stored
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

        with contain_failures(tell):
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
            """Store the start, or return the refresh that another node runs."""
            if tx.refresh_goes_on(run.survey.rowid, mine):
                return tx.survey_refresh(run.survey.rowid)
            _note(tx, run.survey, refresh, mine)
            return None

        return begin

    async def _work(self, run: _Run) -> None:
        async with trio.open_nursery() as nursery:
            if self._cluster.node.incarnation:
                nursery.start_soon(self._store_progress, run)
            failed = await self._outcome(run)
            nursery.cancel_scope.cancel()
        if failed is not None:
            await self._store.write(lambda tx: _note(tx, run.survey, failed))

    async def _store_progress(self, run: _Run) -> None:
        """Store the progress at intervals, for requests to other nodes."""
        while True:
            await trio.sleep(_PROGRESS_INTERVAL_S)
            mine, refresh = self._cluster.node.incarnation, run.refresh
            with suppress(NotFound, Unavailable):
                await self._store.write(_progress_of(run.survey, refresh, mine))

    async def _outcome(self, run: _Run) -> Refresh | None:
        """Compute and store the insights; on failure, return the failed refresh to store."""
        reason = "A bug; the log has the details."
        try:
            async with self._slots:
                for _ in range(_ATTEMPTS_MAX):
                    if await self._attempt(run):
                        return None
            reason = "Responses kept being removed during the refresh. Start it again."
        except ModelError as error:
            log.warning("insights.model_failed", survey=run.survey.id, reason=str(error))
            reason = f"The model failed: {error}"
        except Unavailable as error:
            log.warning("insights.refresh_failed", survey=run.survey.id, reason=error.reason)
            reason = error.detail
        except NotFound:
            raise
        except Exception:  # top of the task: a bug fails this refresh only, with its reason in the API
            log.exception("insights.refresh_failed", survey=run.survey.id)
        return replace(run.refresh, status="failed", ended_at=self._clock(), error=reason)

    async def _attempt(self, run: _Run) -> bool:
        """Read, compute and store; return False if responses were erased in the meantime."""
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
        responses: list[SurveyResponse] = []
        everything, goal, characters = ResponseFilter(), min(survey.responses, RESPONSES_MAX), 0
        while len(responses) < RESPONSES_MAX and characters < CHARACTERS_MAX:
            page = await self._store.read(
                _page(survey.rowid, everything, responses[-1].rowid if responses else None)
            )
            # Responses to a version published after the definitions were read wait for the next refresh.
            responses += [response for response in page if response.version in definitions]
            characters += sum(_size(response) for response in page)
            run.at(_READ * min(1.0, len(responses) / max(goal, 1)))
            if len(page) < _PAGE_SIZE:
                break
        return Sample(definitions, survey.version, responses)

    async def _definitions(self, survey: Survey) -> dict[int, SurveyDefinition]:
        definitions: dict[int, SurveyDefinition] = {}
        for number in range(1, survey.version + 1):
            definitions[number] = await self._store.read(_version(survey, number))
        return definitions


def _note(tx: SurveyTransaction, survey: Survey, refresh: Refresh, incarnation: int = 0) -> None:
    find_survey(tx, survey.project, survey.id)
    tx.put_refresh(survey.rowid, refresh, incarnation)


def _progress_of(survey: Survey, refresh: Refresh, incarnation: int) -> Callable[[SurveyTransaction], None]:
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
) -> Callable[[SurveyReader], list[SurveyResponse]]:
    return lambda reader: list(reader.survey_responses(survey, filter_, before, _PAGE_SIZE))


def _version(survey: Survey, number: int) -> Callable[[SurveyReader], SurveyDefinition]:
    return lambda reader: definition_of(find_version(reader, survey, number).definition)


def _size(response: SurveyResponse) -> int:
    return sum(len(answer) for answer in response.answers.values() if isinstance(answer, str))
