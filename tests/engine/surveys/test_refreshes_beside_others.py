"""A refresh of insights when several nodes may run it: one does, others join it, and it fails with its node."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from deskwire.engine.core.ids import new_id
from deskwire.engine.surveys.insights.insights import Refresh
from deskwire.engine.surveys.insights.refresh import Refreshes
from deskwire.engine.surveys.survey import Survey
from deskwire.engine.surveys.validation.rules import VALID
from tests.support.builders import NOON, PROJECT, HandClock, InlineStore
from tests.support.nodes import ANode, Wires, with_clock


async def test_refresh_is_joined_while_its_node_lives_and_fails_after_its_death(
    inline_store: InlineStore, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    wires = Wires()
    a, b = (ANode(name, with_clock(inline_store), wires) for name in "ab")
    for node in (a, b):
        await nursery.start(node.membership.run)
    await trio.sleep(6)
    new = Survey(0, new_id("srv", NOON), PROJECT.rowid, "Name", "OPEN", 1, 0, 0, NOON, NOON)
    survey: Survey = await inline_store.write(lambda tx: tx.insert_survey(new, VALID))
    under_way, theirs = Refresh("running", NOON, progress=0.4), a.membership.node.incarnation
    await inline_store.write(lambda tx: tx.put_refresh(survey.rowid, under_way, theirs))
    refreshes = Refreshes(nursery, b.way, HandClock(), None, b.membership)
    nursery.start_soon(refreshes.keep_recovering)
    await trio.sleep(6)
    for told in (await refreshes.latest(survey), await refreshes.start(survey)):
        assert told is not None
        assert (told.status, told.progress) == ("running", 0.4)
    a.stop()
    await trio.sleep(13)
    found = await refreshes.latest(survey)
    assert found is not None
    assert found.status == "failed"
    assert (await refreshes.start(survey)).status == "running"
    with trio.fail_after(36_000):  # virtual time, which flies while a thread does the work
        while (found := await refreshes.latest(survey)) is None or found.status == "running":  # noqa: ASYNC110
            await trio.sleep(1)
    assert found.status == "done"
