"""Several nodes on one PostgreSQL under faults: the short form of `make chaos`. The nodes are processes, so that they can be killed."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from tests.chaos.database import Pair
from tests.chaos.faults import Happening, Stage, bring_back_primary, hang_primary, remove_primary
from tests.chaos.run import Run
from tests.chaos.verdict import holders
from tests.interop.client import Launch, launching
from tests.interop.conftest import node  # noqa: F401  # a fixture

pytestmark = pytest.mark.long

SLACK_S = 30.0
"""Other tests run at the same time; `make chaos` is stricter."""
SECONDS = float(os.environ.get("CHAOS_SECONDS", "60"))
FOUGHT_OVER_S = 20.0
"""A shorter run may have only one consumer of the channel; the second one starts after at most ten seconds."""


@pytest.fixture
async def launch() -> AsyncIterator[Launch]:
    """Return a function that starts published clients."""
    async with launching() as launch:
        yield launch


async def test_random_faults_break_no_promise(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    report = await Run(tmp_path, seed, seconds=SECONDS, slack_s=SLACK_S).run()
    assert not report.problems, f"seed {seed}\n{report}"
    if SECONDS > FOUGHT_OVER_S:
        assert len(holders(report.history)) > 1, f"nobody has fought for the channel\n{report}"


@pytest.mark.usefixtures("node")
async def test_killed_node_stopped_node_and_database_restart_lose_nothing(
    tmp_path: Path, launch: Launch
) -> None:
    """Three nodes, a balancer, writers, receivers, and pusher-js: nothing is lost, and nothing is out of order."""
    report = await Run(
        tmp_path, 1, script=(_kill_one, _stop_one, _restart), launch=launch, slack_s=SLACK_S
    ).run()
    assert not report.problems, str(report)
    assert report.history.seen, "the published client has seen nothing"


@pytest.mark.parametrize(
    "death", [hang_primary, remove_primary, bring_back_primary], ids=["hung", "gone", "back"]
)
async def test_writes_resume_within_seconds_after_a_fail_over(tmp_path: Path, death: Happening) -> None:
    """Acknowledged messages are in the promoted server, and the nodes acknowledge again, whether the old primary hangs, is gone or is back."""
    report = await Run(tmp_path, 2, script=(death,), slack_s=SLACK_S).run()
    assert not report.problems, str(report)


async def test_verdict_reports_commits_lost_by_an_asynchronous_standby(
    tmp_path: Path,
) -> None:
    """The verdict is effective: it reports writes that must be lost."""
    run = Run(tmp_path, 1, script=(_fail_over_too_early,), synchronous=False, patience_s=10)
    report = await run.run()
    lost = [each for each in report.problems if "was acknowledged and is there 0 times" in each]
    assert lost, str(report)
    assert not [each for each in report.problems if "are numbered" in each], str(report)


async def _kill_one(stage: Stage) -> tuple[str, float]:
    await stage.nodes[0].crash(3.0)
    return "kill -9 of node-0", 10.0


async def _stop_one(stage: Stage) -> tuple[str, float]:
    await stage.nodes[1].pause(20.0)
    return "SIGSTOP of node-1 for 20 s", 10.0


async def _restart(stage: Stage) -> tuple[str, float]:
    await stage.database.restart(signal.SIGINT, 1.0)
    return "restart of PostgreSQL", 10.0


async def _fail_over_too_early(stage: Stage) -> tuple[str, float]:
    """Promote a standby that lacks the last two seconds of commits."""
    database: Pair = stage.database
    database.replication.silence()
    await trio.sleep(2.0)  # the writes acknowledged now will be lost
    await database.fail_over(caught_up=False)
    database.replication.cut()
    database.replication.speak()
    await trio.sleep(5.0)  # the nodes go on
    return "fail-over to a standby that lags behind", float("inf")
