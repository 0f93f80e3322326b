"""Random calls, some of them concurrent, compared with a plain model of the contract: answers and events.

An example that fails is printed as a list of steps; pass it to `replayed` to play it again. `MODEL_EXAMPLES=<n>` tries
that many examples, different ones in each run.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio
from hypothesis import given, note, settings

from tests.model.commands import Close, Create, Delete, Label, Messages, Note, Patch, Rate, Reopen, Reply, Say
from tests.model.customers import Erase, ListOf, Mark, Merge, PutContact, Recall, Remember, Rename
from tests.model.held import Hold, ListHeld, SendHeld, TakeBack
from tests.model.machines import ActAs, MakeMachine, Revoke, Rotate
from tests.model.play import AtOnce, Elapse, Play, Step, playing
from tests.model.reports import LookAtReport
from tests.model.rewriting import DeleteMessage, Redact
from tests.model.steps import BEGINNING, RANDOM_STEPS
from tests.model.surveys import Respond
from tests.model.tickets import Link, LookAtTicket, Snooze
from tests.model.waiting import NoAnswer, WaitAgain
from tests.plants.plants import planted, plants_for
from tests.support.api.service import Service, running
from tests.support.floors import Floor, judged, shortfalls
from tests.support.properties import budget, here, hold
from tests.support.sockets.receivers import Receiver, answering

EXAMPLES: Final = int(os.environ.get("MODEL_EXAMPLES", "0"))


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        started = Receiver(answering("200 OK"), listeners[0].socket.getsockname()[1])
        nursery.start_soon(trio.serve_listeners, started.serve, listeners)
        yield started
        nursery.cancel_scope.cancel()


@pytest.fixture
async def service(tmp_path: Path, receiver: Receiver) -> AsyncIterator[Service]:
    async with running(tmp_path, rate_limit_per_minute=0) as started:
        yield started


async def replayed(service: Service, receiver: Receiver, steps: Sequence[Step]) -> Play:
    """Play one example on a project of its own, and return it concluded."""
    async with playing(service, receiver) as play:
        for step in (*BEGINNING, *steps):
            await play.step(step)
        await play.conclude()
    return play


async def test_random_calls_get_the_answers_and_events_of_the_contract(
    service: Service, receiver: Receiver
) -> None:
    usual = budget(14)
    chosen = settings(usual, max_examples=EXAMPLES, derandomize=False) if EXAMPLES else usual

    plays: list[Play] = []

    async def judge(steps: list[Step]) -> None:
        plays.append(await replayed(service, receiver, steps))

    @chosen
    @given(RANDOM_STEPS)
    def run(steps: list[Step]) -> None:
        note(f"steps = {steps}")
        here(partial(judge, steps))

    await hold(run)
    floors = floors_of(plays, chosen.max_examples)
    print(judged(floors))
    assert shortfalls(floors) == []


def floors_of(plays: Sequence[Play], examples: int) -> Sequence[Floor]:
    """Return the amounts that a run has judged. Each example contributes its share by construction, not by chance."""
    count, held = len(plays), [each for play in plays for each in play.world.held]
    ended = sum(each.state != "held" or each.conversation.gone for each in held)
    return (
        Floor("examples concluded", count, examples * 10 // 14),
        Floor("answers judged", sum(play.calls for play in plays), 30 * count),
        Floor("events judged", sum(play.told for play in plays), 5 * count),
        Floor("frames compared", sum(len(play.frames) for play in plays), 5 * count),
        Floor("messages held", len(held), count),
        Floor("held messages ended", ended, count),
    )


MERGED: Final[Sequence[Step]] = (
    PutContact("bob", {"name": "Bob", "email": "b@shop.test"}),
    Mark("bob", {"plan": "pro", "a": 1}, ["vip"]),
    Mark("ada", {"plan": "free"}, ["web"]),
    Remember("bob", "likes", "Tea"),
    Respond(0, "bob", {"score": 9}),
    Create("bob", text="Where?"),
    Link(0, about=2),
    AtOnce(Merge("ada", "bob"), Say(2, "contact", "Well?")),
    Merge("ada", "bob"),
    Merge("bob", "ada"),
    Rename("bob", {"name": "B"}),
    Recall("ada"),
    Say(2, "contact", "Thanks"),
    PutContact("bob", {"name": "Another"}),
    Create("bob", text="Hi"),
    Merge("bob", "ada"),
    ListOf("bob"),
    Erase("bob"),
    Merge("bob", "ada"),
)
REWRITTEN: Final[Sequence[Step]] = (
    Say(0, "agent", "Card 4111 1111"),
    Redact(0, 3, ((5, 14),)),
    Redact(0, 3, ((5, 14),)),
    AtOnce(Redact(0, 0), DeleteMessage(0, 0)),
    DeleteMessage(0, 1),
    Redact(0, 1),
    Say(1, "contact", "Hidden"),
    Messages(1),
    DeleteMessage(1, 0),
    Say(1, "contact", "Shown"),
    Patch(1, {"visible": True}),
    Rate(0, 9),
    Label(0, ("b", "a")),
    Close(0, "agent"),
    Say(0, "contact", "And?"),
    Close(0, "agent"),
)
HOLDING: Final[Sequence[Step]] = (
    Hold(0, "First"),
    Hold(0, "Second"),
    Hold(1, "Of a hidden conversation"),
    ListHeld(),
    Say(0, "agent", "Before both"),
    SendHeld(1),
    SendHeld(1),
    TakeBack(1),
    TakeBack(0),
    TakeBack(0),
    SendHeld(0),
    SendHeld(2),
    Elapse(0, ("One", "Two", "Three")),
    AtOnce(Hold(0, "Fourth"), Hold(0, "Fifth")),
    AtOnce(TakeBack(6), SendHeld(6)),
    AtOnce(SendHeld(7), SendHeld(7)),
    Hold(0, "Gone with its conversation"),
    Delete(0),
    TakeBack(8),
    SendHeld(8),
    Messages(1),
    TakeBack(9),
)


async def test_held_messages_become_messages_or_drafts_as_in_the_model(
    service: Service, receiver: Receiver
) -> None:
    play = await replayed(service, receiver, HOLDING)
    assert len(play.world.held) == 9


@pytest.mark.parametrize("bug", plants_for("model"))
async def test_a_planted_bug_is_found_by_an_example(service: Service, receiver: Receiver, bug: str) -> None:
    async def play_all() -> None:
        for example in (HOLDING, REWRITTEN, MERGED):
            await replayed(service, receiver, example)

    with planted(bug), pytest.RaisesGroup(AssertionError, allow_unwrapped=True, flatten_subgroups=True):
        await play_all()


async def test_a_snoozed_ticket_wakes_as_in_the_model(service: Service, receiver: Receiver) -> None:
    """Random examples rarely combine these steps."""
    snoozed, look = Snooze(0, ahead_s=3_600), LookAtTicket(0)
    steps: list[Step] = [
        Link(0, about=0),
        snoozed,
        Say(0, "agent", "Hm"),
        Say(0, "bot", "Hm"),
        Note(0, "Hm"),
        look,
    ]
    steps += [Say(1, "contact", "Not here"), look, Close(0, "agent"), look, Say(0, "contact", "Well?"), look]
    steps += [snoozed, AtOnce(Say(0, "contact", "And?"), snoozed), look, Link(0, about=None), snoozed]
    steps += [Say(0, "contact", "Bye"), look]
    await replayed(service, receiver, steps)


async def test_merge_redaction_and_deletion_match_the_model(service: Service, receiver: Receiver) -> None:
    """Random examples rarely combine these steps."""
    await replayed(service, receiver, MERGED)
    await replayed(service, receiver, REWRITTEN)


async def test_a_former_secret_expires_as_in_the_model(service: Service, receiver: Receiver) -> None:
    used = [ActAs(0), ActAs(0, "previous"), ActAs(0, "ended")]
    steps: list[Step] = [
        *used,
        Rotate(0, 3_600),
        *used,
        Rotate(0, 0),
        *used,
        AtOnce(Revoke(0), ActAs(0)),
        *used,
    ]
    await replayed(service, receiver, [*steps, Rotate(0, 0), MakeMachine(("tickets.read",)), ActAs(1)])


async def test_a_workflow_answer_wakes_a_snoozed_ticket(service: Service, receiver: Receiver) -> None:
    picked: list[Step] = [Link(0, about=0), Snooze(0, ahead_s=3_600), Reply(0, "yes"), LookAtTicket(0)]
    await replayed(service, receiver, picked)


async def test_a_mark_that_no_answer_is_needed_ends_the_wait_as_in_the_model(
    service: Service, receiver: Receiver
) -> None:
    """Random examples rarely mark a conversation by the index of its newest message."""
    look: Sequence[Step] = (LookAtReport("backlog"), LookAtReport("first-response", "agent"))
    steps: list[Step] = [
        Create("ada", text="Thanks!"),
        NoAnswer(2, 1),
        AtOnce(NoAnswer(2, 0), NoAnswer(2, 0)),
        *look,
        Note(2, "Done"),
        Say(2, "system", "Seen"),
        AtOnce(WaitAgain(2), WaitAgain(2)),
        *look,
        AtOnce(Say(2, "contact", "One more thing"), NoAnswer(2, 1)),
        AtOnce(Say(2, "contact", "And another"), NoAnswer(2, 2)),
        NoAnswer(2, 0),
        NoAnswer(2, 3),
        AtOnce(Say(2, "agent", "Sure"), WaitAgain(2)),
        WaitAgain(2),
        Say(2, "contact", "Bye"),
        NoAnswer(2, 5),
        Rate(2, 9),
        Close(2, "agent"),
        NoAnswer(2, 5),
        WaitAgain(2),
        Reopen(2),
        WaitAgain(2),
        NoAnswer(7, 0),
        *look,
    ]
    await replayed(service, receiver, steps)
