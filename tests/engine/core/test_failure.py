"""Failures are contained, and exceptions that end a task on purpose pass."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.core.tasks.failure import RESTART_DELAY_S, contain_failures, run_with_restarts
from tests.support.failures import BREAKS, cancelled, failures_logged


@pytest.mark.parametrize("kind", [ValueError, trio.ClosedResourceError, MemoryError, RecursionError])
def test_failure_is_reported_and_contained_alone_and_in_groups(kind: type[Exception]) -> None:
    error = kind()
    for raised in (error, ExceptionGroup("", [error]), BaseExceptionGroup("", [ExceptionGroup("", [error])])):
        told: list[BaseException] = []
        with contain_failures(told.append):
            raise raised
        assert list(map(repr, told)) == [repr(raised)]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_exception_that_ends_the_process_passes_without_the_failure_beside_it(
    kind: type[BaseException],
) -> None:
    told: list[BaseException] = []
    with pytest.raises(kind), contain_failures(told.append):
        raise kind
    with pytest.raises(BaseExceptionGroup) as group, contain_failures(told.append):
        raise BaseExceptionGroup("", [ValueError(), BaseExceptionGroup("", [KeyError(), kind()])])
    assert group.group_contains(kind)
    assert not group.group_contains(ValueError)
    assert not group.group_contains(KeyError)
    (failure,) = told
    assert repr(failure) == "ExceptionGroup('', [ValueError(), ExceptionGroup('', [KeyError()])])"


async def test_cancellation_reaches_its_scope_and_the_failure_beside_it_the_log() -> None:
    told: list[BaseException] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        with contain_failures(told.append):
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled as error:
                raise BaseExceptionGroup("", [ValueError(), error]) from None
    assert scope.cancelled_caught
    (failure,) = told
    assert isinstance(failure, ExceptionGroup)
    assert failure.subgroup(ValueError)


async def test_cancellation_without_a_cancelled_scope_is_a_failure() -> None:
    told: list[BaseException] = []
    with contain_failures(told.append):
        raise await cancelled()
    with contain_failures(told.append):
        raise BaseExceptionGroup("", [await cancelled()])
    assert [type(each) for each in told] == [trio.Cancelled, BaseExceptionGroup]


async def test_failed_background_task_restarts_after_a_pause(
    autojump_clock: MockClock,
) -> None:
    breaks, began = list(BREAKS), list[float]()

    async def run() -> None:
        began.append(trio.current_time())
        if breaks:
            await breaks.pop()()

    with failures_logged() as failures:
        await run_with_restarts("upkeep", run)
        told = [(entry["event"], entry["task"]) for entry in failures()]
    assert told == [("background.failed", "upkeep")] * len(BREAKS)
    assert began == [number * RESTART_DELAY_S for number in range(len(BREAKS) + 1)]


async def test_a_task_of_the_background_ends_when_it_is_cancelled(autojump_clock: MockClock) -> None:
    with trio.move_on_after(1) as scope:
        await run_with_restarts("upkeep", trio.sleep_forever)
    assert scope.cancelled_caught
