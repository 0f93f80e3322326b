"""Any calls in any order, two of them at once, against a plain model of the contract: answers and events.

An example that fails is printed as a list of steps; give it to `replayed` to play it again. `MODEL_EXAMPLES=<n>` tries
that many, others in each run.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.model.commands import Close, Create, Label, Messages, Note, Patch, Rate, Reply, Say
from tests.model.customers import Erase, ListOf, Mark, Merge, PutContact, Recall, Remember, Rename
from tests.model.machines import ActAs, MakeMachine, Revoke, Rotate
from tests.model.play import AtOnce, Step, playing
from tests.model.rewriting import DeleteMessage, Redact
from tests.model.steps import BEGINNING, STEPS
from tests.model.surveys import Respond
from tests.model.tickets import Link, LookAtTicket, Snooze
from tests.support.api.service import Service, running
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


async def replayed(service: Service, receiver: Receiver, steps: list[Step]) -> None:
    """Play one example, on a project of its own."""
    async with playing(service, receiver) as play:
        for step in (*BEGINNING, *steps):
            await play.step(step)
        await play.conclude()


async def test_whatever_is_called_the_answers_and_the_events_are_those_of_the_contract(
    service: Service, receiver: Receiver
) -> None:
    usual = budget(14)
    chosen = settings(usual, max_examples=EXAMPLES, derandomize=False) if EXAMPLES else usual

    @chosen
    @given(st.lists(STEPS, min_size=8, max_size=20))
    def run(steps: list[Step]) -> None:
        note(f"steps = {steps}")
        here(partial(replayed, service, receiver, steps))

    await hold(run)


async def test_what_wakes_a_snoozed_ticket_in_the_model_wakes_it_in_the_service(
    service: Service, receiver: Receiver
) -> None:
    """Chance puts these steps together too seldom."""
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


async def test_a_merge_a_redaction_and_a_deletion_leave_what_the_model_says(
    service: Service, receiver: Receiver
) -> None:
    """Chance puts these steps together too seldom as well."""
    merged: list[Step] = [
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
    ]
    await replayed(service, receiver, merged)
    rewritten: list[Step] = [
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
    ]
    await replayed(service, receiver, rewritten)


async def test_a_secret_is_good_for_as_long_as_the_model_says(service: Service, receiver: Receiver) -> None:
    used = [ActAs(0), ActAs(0, "former"), ActAs(0, "ended")]
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


async def test_the_answer_to_a_workflow_wakes_a_snoozed_ticket_as_in_the_model(
    service: Service, receiver: Receiver
) -> None:
    picked: list[Step] = [Link(0, about=0), Snooze(0, ahead_s=3_600), Reply(0, "yes"), LookAtTicket(0)]
    await replayed(service, receiver, picked)
