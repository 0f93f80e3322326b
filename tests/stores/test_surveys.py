"""Surveys in the database: erased to the last byte, removed in batches, found by indexes."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.commands import ContactRef
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.engine.llm.chat import ModelError
from deskwire.engine.privacy.erasure import Erasures
from deskwire.engine.surveys.insights.insights import PARTS, Insights, Refresh
from deskwire.engine.surveys.insights.refresh import RUNNING_MAX, Refreshes
from deskwire.engine.surveys.removal import BATCH, Removals, put_out_of_sight
from deskwire.engine.surveys.survey import ResponseFilter, Survey, SurveyResponse
from deskwire.engine.surveys.validation.rules import VALID
from deskwire.storage.sqlite.directory import FILE_NAME
from tests.storage.test_erasure import left_in, mark, scrubbed
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT, HandClock, InlineStore, Running, running
from tests.support.seeing import seen


def survey(name: str = "After the chat") -> Survey:
    return Survey(0, new_id("srv", NOON), PROJECT.rowid, name, "OPEN", 1, 0, 0, NOON, NOON)


def response(contact: Contact | None = None, **answers: Any) -> SurveyResponse:
    key = None if contact is None else contact.rowid
    return SurveyResponse(0, new_id("rsp", NOON), 1, key, None, "en", answers, NOON)


async def stored(engine: Running | InlineStore) -> Survey:
    store = engine.store if isinstance(engine, Running) else engine
    new = survey()
    return await store.write(lambda tx: tx.insert_survey(new, VALID))


async def answer(engine: Running, to: Survey, contact: Contact | None, **answers: Any) -> SurveyResponse:
    new = response(contact, **answers)
    stored: SurveyResponse = await engine.store.write(lambda tx: tx.insert_response(to.rowid, new))
    return stored


async def contact(engine: Running, user_id: str) -> Contact:
    ref = ContactRef(user_id, {})
    stored: Contact = await engine.store.write(lambda tx: put_contact(tx, PROJECT, ref, NOON))
    return stored


def insights(**parts: Any) -> Insights:
    return Insights({**PARTS, **parts}, "api", NOON)


def theme(*quotes: str) -> Mapping[str, Any]:
    return {
        "id": "t",
        "title": "T",
        "sentiment": "neutral",
        "count": 2,
        "countsByVersion": {},
        "quotes": [*quotes],
    }


@pytest.mark.sqlite
async def test_nothing_that_an_erased_contact_answered_is_left_in_the_file(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        target = await stored(engine)
        ada, bob = await contact(engine, "ada"), await contact(engine, "bob")
        for number in range(40):
            await answer(engine, target, ada, why=mark("GONE") * (1 + number % 7))
            await answer(engine, target, bob, why=mark("KEPT") * (1 + number % 5))
        quoted = insights(themes=[theme(mark("GONE"), "fine")], summary=f"One said {mark('GONE') * 7}.")
        await engine.store.write(lambda tx: tx.put_insights(target.rowid, quoted))
        assert {place for _, place in left_in(tmp_path, ("GONE", "KEPT"))} == {"GONE", "KEPT"}
        async with trio.open_nursery() as nursery:
            await Erasures(nursery, engine.store, HandClock(), engine.directory).erase(PROJECT, "ada")
        await scrubbed(engine)
        assert {place for _, place in left_in(tmp_path, ("GONE", "KEPT"))} == {"KEPT"}
        now = seen(engine.store, lambda reader: reader.survey(PROJECT.rowid, target.id))
        assert now is not None
        assert (now.responses, now.erasures) == (40, 1)
        after = seen(engine.store, lambda reader: reader.survey_insights(target.rowid))
        assert after is not None
        assert (after.parts["themes"][0]["quotes"], after.parts["summary"]) == (["fine"], "")


async def test_an_erasure_takes_many_responses_in_batches(inline_store: InlineStore) -> None:
    target = await stored(inline_store)
    ada = await inline_store.write(lambda tx: put_contact(tx, PROJECT, ContactRef("ada", {}), NOON))
    for _ in range(7):
        await inline_store.write(lambda tx: tx.insert_response(target.rowid, response(ada, why="slow")))
    removed = [len(await inline_store.write(lambda tx: tx.erase_responses(ada.rowid, 3))) for _ in range(4)]
    assert removed == [3, 3, 1, 0]


@pytest.mark.sqlite
async def test_a_deleted_response_leaves_no_byte_and_no_quote(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        target = await stored(engine)
        made = await answer(engine, target, None, why=mark("GONE") * 30)
        await engine.store.write(
            lambda tx: tx.put_insights(target.rowid, insights(themes=[theme(mark("GONE"))]))
        )
        await engine.store.write(lambda tx: tx.delete_response(target.rowid, made))
        await scrubbed(engine)
        assert left_in(tmp_path, ("GONE",)) == []


@pytest.mark.sqlite
async def test_removed_survey_is_hidden_at_once_and_then_deleted(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        target = await stored(engine)

        def fill(tx: Any) -> None:
            for _ in range(BATCH + 20):
                tx.insert_response(target.rowid, response(why=mark("GONE")))

        await engine.store.write(fill)
        await engine.store.write(lambda tx: tx.put_insights(target.rowid, insights(summary=mark("GONE"))))
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as caller:
                caller.cancel()  # the caller need not wait
                removal = engine.store.write(lambda tx: put_out_of_sight(tx, PROJECT.rowid, target.id))
                await Removals(nursery, engine.store).clear_behind(removal)
            assert seen(engine.store, lambda reader: reader.survey(PROJECT.rowid, target.id)) is None
        assert seen(engine.store, lambda reader: reader.removed_surveys()) == []
        await scrubbed(engine)
        assert left_in(tmp_path, ("GONE",)) == []


async def test_interrupted_removal_is_resumed(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        target = await stored(engine)
        await answer(engine, target, None, why="slow")
        await engine.store.write(lambda tx: tx.remove_survey(target.rowid))
    async with running(tmp_path) as engine, trio.open_nursery() as nursery:
        await Removals(nursery, engine.store).clear()
        assert seen(engine.store, lambda reader: reader.removed_surveys()) == []


async def test_a_removal_waits_for_the_disk(inline_store: InlineStore, autojump_clock: Any) -> None:
    target = await stored(inline_store)
    await inline_store.write(lambda tx: tx.remove_survey(target.rowid))
    inline_store.write_failure = Unavailable("full")
    async with trio.open_nursery() as nursery:
        await Removals(nursery, inline_store).clear()
    assert seen(inline_store, lambda reader: reader.removed_surveys()) == []


async def test_another_project_finds_nothing_of_ours(inline_store: InlineStore) -> None:
    target = await stored(inline_store)
    assert seen(inline_store, lambda reader: reader.survey(OTHER_PROJECT.rowid, target.id)) is None
    assert seen(inline_store, lambda reader: reader.surveys(OTHER_PROJECT.rowid, None, None, None, 10)) == []
    other = await stored(inline_store)
    made = await inline_store.write(lambda tx: tx.insert_response(target.rowid, response(why="slow")))
    assert seen(inline_store, lambda reader: reader.survey_response(other.rowid, made.id)) is None


PLANS = [
    (ResponseFilter(), "survey_responses_by_survey"),
    (ResponseFilter(version=1), "survey_responses_by_version"),
    (ResponseFilter(contact=1), "survey_responses_by_contact"),
]


@pytest.mark.sqlite
@pytest.mark.parametrize(("wanted", "index"), PLANS, ids=[index for _, index in PLANS])
async def test_a_page_of_responses_is_read_from_an_index_without_sorting(
    tmp_path: Path, inline_store: InlineStore, wanted: ResponseFilter, index: str
) -> None:
    await stored(inline_store)
    plan = explained(tmp_path, inline_store, lambda reader: reader.survey_responses(1, wanted, None, 50))
    assert f"USING INDEX {index}" in plan
    assert "TEMP B-TREE" not in plan


@pytest.mark.sqlite
async def test_a_page_of_surveys_is_read_from_an_index_without_sorting(
    tmp_path: Path, inline_store: InlineStore
) -> None:
    plan = explained(tmp_path, inline_store, lambda reader: reader.surveys(1, None, None, None, 50))
    assert "USING INDEX surveys_by_project" in plan
    assert "TEMP B-TREE" not in plan


def explained(directory: Path, store: InlineStore, query: Any) -> str:
    """Return the plans of the statements that a query runs."""
    statements: list[str] = []
    connection: sqlite3.Connection = store._here.conn
    connection.set_trace_callback(statements.append)
    seen(store, query)
    connection.set_trace_callback(None)
    with closing(sqlite3.connect(directory / FILE_NAME)) as other:
        rows = [row for sql in statements for row in other.execute(f"EXPLAIN QUERY PLAN {sql}")]
    return "\n".join(row[3] for row in rows)


class Slow:
    """A model that answers when the test allows it, so that the test can act before the answer."""

    def __init__(self) -> None:
        self.asked, self.answer = trio.Event(), trio.Event()
        self.calls = 0

    async def complete(self, messages: Any, schema: Any) -> Mapping[str, Any]:
        self.calls += 1
        self.asked.set()
        await self.answer.wait()
        return {"themes": [], "summary": "All is well."}


async def test_refresh_does_not_restore_responses_erased_during_its_run(tmp_path: Path) -> None:
    async with running(tmp_path) as engine, trio.open_nursery() as nursery:
        target = await stored(engine)
        ada = await contact(engine, "ada")
        for _ in range(2):
            await answer(engine, target, ada, score=3, why=mark("GONE"))
        await answer(engine, target, None, score=3, why=mark("GONE"))  # a second respondent: a theme to quote
        model = Slow()
        refreshes = Refreshes(nursery, engine.store, HandClock(), model)
        begun = await refreshes.start(target)
        assert begun.status == "running"
        await model.asked.wait()
        await engine.store.write(lambda tx: tx.erase_responses(ada.rowid, 100))
        model.answer.set()
        with trio.fail_after(10):
            while target.rowid in refreshes._running:  # noqa: ASYNC110  # poll: there is no notification when a refresh ends
                await trio.sleep(0.01)  # virtual time: the mock clock jumps
        done = seen(engine.store, lambda reader: reader.survey_refresh(target.rowid))
        assert done is not None
        assert (done.status, done.responses, done.source) == ("done", 1, "model")
        assert model.calls == 4  # themes and summary, of three responses and again of the one that is left
        nursery.cancel_scope.cancel()


async def test_a_second_call_joins_the_refresh_that_is_running(tmp_path: Path) -> None:
    async with running(tmp_path) as engine, trio.open_nursery() as nursery:
        target = await stored(engine)
        await answer(engine, target, None, score=3, why="slow")
        model = Slow()
        refreshes = Refreshes(nursery, engine.store, HandClock(), model)
        first = await refreshes.start(target)
        await model.asked.wait()
        second = await refreshes.start(target)
        assert second.started_at == first.started_at
        assert 0 < second.progress < 1
        assert await refreshes.latest(target) == second
        assert model.calls == 1
        nursery.cancel_scope.cancel()


async def test_interrupted_refresh_has_failed(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        target = await stored(engine)
        await answer(engine, target, None, score=3, why="slow")
        async with trio.open_nursery() as nursery:
            model = Slow()
            await Refreshes(nursery, engine.store, HandClock(), model).start(target)
            await model.asked.wait()
            nursery.cancel_scope.cancel()
    async with running(tmp_path) as engine, trio.open_nursery() as nursery:
        refreshes = Refreshes(nursery, engine.store, HandClock(), None)
        await refreshes.recover()
        found = seen(engine.store, lambda reader: reader.survey_refresh(target.rowid))
        assert found is not None
        assert (found.status, found.error) == (
            "failed",
            "The service was stopped in between; start it again.",
        )
        assert await refreshes.latest(target) == found


async def test_a_refresh_whose_end_could_not_be_stored_has_failed(inline_store: InlineStore) -> None:
    target = await stored(inline_store)
    left = Refresh("running", NOON)
    await inline_store.write(lambda tx: tx.put_refresh(target.rowid, left))
    async with trio.open_nursery() as nursery:
        found = await Refreshes(nursery, inline_store, HandClock(), None).latest(target)
    assert found is not None
    assert found.status == "failed"


class Failing:
    """A model that always fails."""

    async def complete(self, messages: Any, schema: Any) -> Mapping[str, Any]:
        await trio.lowlevel.checkpoint()
        raise ModelError("It answered 500.")


async def test_failing_model_ends_the_refresh_and_keeps_the_insights(
    inline_store: InlineStore,
) -> None:
    target = await stored(inline_store)
    before = insights(summary="As it was.")
    await inline_store.write(lambda tx: tx.put_insights(target.rowid, before))
    async with trio.open_nursery() as nursery:
        refreshes = Refreshes(nursery, inline_store, HandClock(), Failing())
        await refreshes.start(target)
    ended = await refreshes.latest(target)
    assert ended is not None
    assert (ended.status, ended.error) == ("failed", "The model failed: It answered 500.")
    assert seen(inline_store, lambda reader: reader.survey_insights(target.rowid)) == before


async def test_refresh_ends_quietly_if_its_survey_is_removed(
    inline_store: InlineStore,
) -> None:
    target = await stored(inline_store)
    model = Slow()
    async with trio.open_nursery() as nursery:
        await Refreshes(nursery, inline_store, HandClock(), model).start(target)
        await model.asked.wait()
        await inline_store.write(lambda tx: tx.remove_survey(target.rowid))
        model.answer.set()
    assert seen(inline_store, lambda reader: reader.survey_insights(target.rowid)) is None


async def test_too_many_refreshes_at_once_are_refused(inline_store: InlineStore) -> None:
    async with trio.open_nursery() as nursery:
        model = Slow()
        refreshes = Refreshes(nursery, inline_store, HandClock(), model)
        for _ in range(RUNNING_MAX):
            await refreshes.start(await stored(inline_store))
        with pytest.raises(Unavailable) as refused:
            await refreshes.start(await stored(inline_store))
        assert refused.value.reason == "refresh_busy"
        nursery.cancel_scope.cancel()


async def test_a_refresh_that_can_not_be_stored_is_refused(inline_store: InlineStore) -> None:
    target = await stored(inline_store)
    async with trio.open_nursery() as nursery:
        refreshes = Refreshes(nursery, inline_store, HandClock(), None)
        inline_store.write_failure = Unavailable("The disk is full.", code="storage_failed")
        with pytest.raises(Unavailable):
            await refreshes.start(target)
    assert seen(inline_store, lambda reader: reader.survey_refresh(target.rowid)) is None
