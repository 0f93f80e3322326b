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

from tests.engine.delivery.conftest import Receiver, answering
from tests.properties import budget, here, hold
from tests.wire.conftest import Service, running

from .commands import (
    Assign,
    Close,
    Create,
    Delete,
    Fetch,
    Messages,
    NetworkLogs,
    Note,
    Patch,
    Rate,
    Read,
    Reopen,
    Reply,
    Say,
    Start,
)
from .commands import Step as PendingStep
from .content import Content, Translate
from .customers import Erase, ListOf, PutContact, Respond, Responses
from .desk import (
    AddEndpoint,
    Bulk,
    ChangeTicket,
    DropEndpoint,
    Forget,
    Link,
    ListEndpoints,
    MakeTicket,
    Recall,
    Remember,
    RemoveTicket,
)
from .play import Again, AtOnce, Step, playing

EXAMPLES: Final = int(os.environ.get("MODEL_EXAMPLES", "0"))

BEGINNING: Final[tuple[Step, ...]] = (
    Create("ada", text="Hello"),
    Create("bob", visible=False),
    MakeTicket(),
    Start(0),
)
PLACES: Final = st.sampled_from([0, 0, 0, 0, 1, 1, 1, 2, 7])
"""Mostly of what is there from the beginning."""
USERS: Final = st.sampled_from(["ada", "ada", "bob", "böb ?"])
TEXTS: Final = st.sampled_from(["Hello", "é\u202e\U0001f600", '"\\\n', "x" * 300])
VALUES: Final[st.SearchStrategy[object]] = st.sampled_from(
    [None, None, 0, 1, True, 1.5, "a", [1, None], {"a": {}}, 2**53]
)
ATTRIBUTES: Final = st.dictionaries(st.sampled_from(["a", "b", "ä~/"]), VALUES, max_size=2)
IDENTITIES: Final = st.fixed_dictionaries(
    {}, optional={"name": st.sampled_from([None, "Ada", "Eve"]), "email": st.sampled_from([None, "a@b.test"])}
)
PATCHES: Final = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from([None, "A", "B"]),
        "archived": st.booleans(),
        "status": st.sampled_from(["OPEN", "PENDING"]),
        "attributes": ATTRIBUTES,
        "visible": st.sampled_from([True, True, False]),
    },
).filter(bool)
ENTRIES: Final = st.sampled_from(["statictranslation:a", f"article:{'0a' * 12}"])
LANGUAGES: Final = st.sampled_from([None, "en", "de"])
PRIORITIES: Final = st.sampled_from(["LOW", "URGENT"])
TAGS: Final = st.sampled_from([(), ("a",), ("a", "ß")])

CREATES: Final = st.builds(
    Create,
    USERS,
    IDENTITIES,
    st.sampled_from([None, "A"]),
    ATTRIBUTES,
    st.sampled_from([True, True, False]),
    st.none() | TEXTS,
)
SAYS: Final = st.builds(Say, PLACES, st.sampled_from(["contact", "contact", "agent", "bot", "system"]), TEXTS)
STARTS: Final = st.builds(Start, st.just(0) | PLACES)
REPLIES: Final = st.builds(Reply, st.just(0) | PLACES, st.sampled_from(["yes", "no", "never"]))
ON_CONVERSATION: Final = st.one_of(
    SAYS,
    st.builds(Close, PLACES, st.sampled_from(["agent", "bot", "system"])),
    st.builds(Reopen, PLACES),
    st.builds(Assign, PLACES, st.booleans()),
    st.builds(Read, PLACES),
    st.builds(Rate, PLACES, st.sampled_from([0, 5, 10, 11, -1])),
    st.builds(Patch, PLACES, PATCHES),
    STARTS,
    REPLIES,
    st.builds(NetworkLogs, PLACES, st.sampled_from([0, 3, 101])),
    st.builds(Fetch, PLACES),
    st.builds(PendingStep, PLACES),
)
CONTACTS: Final = st.builds(PutContact, st.sampled_from(["ada", "bob"]), IDENTITIES)
TICKETS: Final = st.builds(MakeTicket, PRIORITIES, TAGS, st.none() | PLACES)
CHANGES: Final = st.one_of(
    st.builds(
        ChangeTicket,
        PLACES,
        st.fixed_dictionaries({"status": st.sampled_from(["OPEN", "DONE"])}),
        st.booleans(),
    ),
    st.builds(ChangeTicket, PLACES, st.just({"title": "Another", "tags": []})),
)
BACKGROUND: Final = st.one_of(
    st.builds(Messages, PLACES),
    st.builds(ListOf, st.sampled_from(["ada", "bob"]), st.sampled_from([None, "OPEN", "CLOSED"])),
    st.builds(Delete, PLACES),
    st.builds(Erase, st.sampled_from(["ada", "bob"])),
    st.builds(RemoveTicket, PLACES),
    st.builds(Link, PLACES, st.just({}), st.just(False), st.none() | PLACES),
    st.builds(
        Bulk,
        st.lists(PLACES, min_size=1, max_size=4).map(tuple),
        st.sampled_from([None, 1, 2]),
        st.none() | PRIORITIES,
        st.booleans(),
    ),
    st.builds(Remember, st.sampled_from(["ada", "bob"]), st.sampled_from(["likes", "ö"]), TEXTS),
    st.builds(Recall, st.sampled_from(["ada", "bob"])),
    st.builds(Forget, st.sampled_from(["ada", "bob"])),
    st.builds(AddEndpoint, st.sampled_from([(), ("message.created",)])),
    st.builds(DropEndpoint, PLACES),
    st.builds(ListEndpoints),
    st.builds(Respond, USERS, st.sampled_from([0, 5])),
    st.builds(Respond, USERS, st.sampled_from([0, 5])),
    st.builds(Responses),
    st.builds(Translate, ENTRIES, LANGUAGES, TEXTS),
    st.builds(Content, ENTRIES, LANGUAGES),
    st.builds(Note, PLACES, TEXTS),
)
TOGETHER: Final = st.one_of(
    ON_CONVERSATION, ON_CONVERSATION, CREATES, CONTACTS, TICKETS, CHANGES, st.builds(Delete, PLACES)
)
KEYED: Final = st.one_of(
    CREATES,
    SAYS,
    STARTS,
    REPLIES,
    TICKETS,
    st.builds(Note, PLACES, TEXTS),
    st.builds(Remember, st.sampled_from(["ada", "bob"]), st.sampled_from(["likes", "ö"]), TEXTS),
    st.builds(AddEndpoint),
)
STEPS: Final[st.SearchStrategy[Step]] = st.one_of(
    ON_CONVERSATION,
    ON_CONVERSATION,
    CREATES,
    CONTACTS,
    TICKETS,
    CHANGES,
    BACKGROUND,
    BACKGROUND,
    st.builds(AtOnce, TOGETHER, TOGETHER),
    st.builds(AtOnce, TOGETHER, TOGETHER),
    st.builds(Again, KEYED, st.booleans()),
)


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
