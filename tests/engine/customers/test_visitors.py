"""Visitors in the store: the first message, the upgrade to an identified contact, its repetition, and the end of tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import trio

from deskwire.engine.channels.channel import Channel, Look
from deskwire.engine.conversations.commands import ContactRef, Create
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.core.actor import SYSTEM
from deskwire.engine.core.errors import Conflict, Unauthenticated
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.customers.session import IDLE_MS, LONGEST_MS, CustomerSession, check_live, expiry
from deskwire.engine.customers.starting import (
    SignIn,
    StartedSession,
    VisitorStart,
    contact_ref,
    start_session,
)
from deskwire.engine.customers.tokens import VisitorTokens, hash_token, new_session_token
from deskwire.engine.merging.merges import MergeRequest, Merges, start_merge
from deskwire.engine.privacy.erasure import Erasures
from deskwire.http.api.auth.customers import visitor_session
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT, HandClock, Running, post, running

TOKENS = VisitorTokens(lambda: (b"k" * 32,))
CONTEXT = {"url": "https://shop.example/", "title": "planted title"}


class Customers:
    """A running store with a channel, and the calls that start sessions."""

    def __init__(self, here: Running, nursery: trio.Nursery, channel: Channel, clock: HandClock) -> None:
        self.here, self.channel, self.clock = here, channel, clock
        self.merges = Merges(nursery, here.store, clock, here.directory)
        self.erasures = Erasures(nursery, here.store, clock, here.directory)

    async def session(self, token: str) -> CustomerSession:
        """Return the session of a token like the authentication of a call."""
        stored: CustomerSession | None = await self.here.store.read(
            lambda reader: reader.customer_session(hash_token(token))
        )
        named = TOKENS.read(token)
        if stored is None and named is not None:
            return visitor_session(named, PROJECT, self.channel, hash_token(token))
        assert stored is not None
        return stored

    def token(self) -> str:
        """Return the token of a new visitor."""
        return TOKENS.issue(self.channel.id, self.clock())

    async def write(self, token: str, **identity: str | None) -> Receipt:
        """Start a conversation as a customer's call does."""
        return await self.write_as(await self.session(token), **identity)

    async def write_as(self, session: CustomerSession, **identity: str | None) -> Receipt:
        """Start a conversation with a session that was authenticated earlier."""
        now = self.clock()
        check_live(session, now)
        command = Create(
            new_id("cnv", now), PROJECT.rowid, contact_ref(session, identity), message=post(text="Hello")
        )
        return await self.here.directory.create(
            PROJECT, command, VisitorStart(session, now, CONTEXT, "Firefox")
        )

    async def sign_in(self, user_id: str, shown: str | None = None, **identity: str | None) -> StartedSession:
        """Start the session of an identity; with a token that the browser has shown."""
        hashed = None if shown is None else hash_token(shown)
        token = hash_token(new_session_token())
        wanted = SignIn(PROJECT, self.channel, user_id, identity, None, token, "", hashed)
        started: StartedSession = await self.here.store.write(
            lambda tx: start_session(tx, wanted, self.clock())
        )
        return started

    async def merge(self, started: StartedSession) -> None:
        """Merge the visitor into the contact of the started session, as `POST /customer/session` does."""
        assert started.visitor is not None
        wanted = MergeRequest(started.contact.id, started.visitor, by_id=True, actor=SYSTEM, fills=False)
        await self.merges.merge(PROJECT, wanted)

    async def owner(self, receipt: Receipt) -> str:
        """Return the user id of a conversation's contact."""
        found = await self.here.store.read(
            lambda reader: reader.conversation(PROJECT.rowid, receipt.after.id)
        )
        assert found is not None
        return str(found[1].user_id)

    async def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the data of the project's events of a type."""
        found = await self.here.store.read(
            lambda reader: reader.named_events(PROJECT.rowid, 0, 200, frozenset({kind}))
        )
        return [orjson.loads(event.body)["data"] for event in found]


@asynccontextmanager
async def customers(directory: Path, known: Channel | None = None) -> AsyncIterator[Customers]:
    """Run the parts over a store, with a new channel or one that it has."""
    clock = HandClock()
    async with running(directory, clock=clock) as here, trio.open_nursery() as nursery:
        made = Channel(
            0, new_id("chn", NOON), PROJECT.rowid, "widget", "Shop", True, (), "optional", (), True, (), Look(),
            None, None, False, b"s", "", NOON, NOON,
        )  # fmt: skip
        channel = known or await here.store.write(lambda tx: tx.insert_channel(made))
        yield Customers(here, nursery, channel, clock)
        nursery.cancel_scope.cancel()


async def test_first_message_stores_contact_session_and_event_together(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        token = here.token()
        before = await here.session(token)
        assert (before.rowid, before.contact) == (None, None)
        receipt = await here.write(token, name="Ada", email="ada@x.example")
        after = await here.session(token)
        assert after.rowid is not None
        assert after.contact == receipt.contact
        assert (after.id, after.user_id, after.verified) == (before.id, before.user_id, False)
        assert (receipt.contact.user_id, receipt.contact.name) == (before.user_id, "Ada")
        (started,) = await here.events("contact.session.started")
        assert started["contact"]["id"] == receipt.contact.id
        assert started["session"] == {
            "id": after.id,
            "channelId": here.channel.id,
            "verified": False,
            "context": CONTEXT,
        }


async def test_repeated_first_message_finds_the_same_contact(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        token = here.token()
        stale = await here.session(token)
        first = await here.write_as(stale)
        again = await here.write_as(stale)  # of another tab, which was authenticated before
        assert again.contact == first.contact
        assert len(await here.events("contact.session.started")) == 1


async def test_first_messages_of_two_tabs_store_one_session(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        stale = await here.session(here.token())
        found: list[Receipt] = []

        async def write() -> None:
            found.append(await here.write_as(stale))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(write)
        assert len({receipt.contact.id for receipt in found}) == 1
        assert len(await here.events("contact.session.started")) == 1


async def test_ended_visitor_token_is_refused_in_the_transaction_too(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        token = here.token()
        stale = await here.session(token)
        await here.write(token)
        rowid = (await here.session(token)).rowid
        assert rowid is not None
        assert await here.here.store.write(lambda tx: tx.end_customer_session(rowid, here.clock()))
        for session in (
            stale,
            replace(await here.session(token), ended_at=None, expires_at=stale.expires_at),
        ):
            with pytest.raises(Unauthenticated, match="ended"):
                await here.write_as(session)
        with pytest.raises(Unauthenticated):
            check_live(await here.session(token), here.clock())


async def test_signed_identity_takes_the_visitor_over(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        token = here.token()
        written = await here.write(token, name="Guest", email="guest@x.example")
        started = await here.sign_in("u1", token, name="Ada")
        await here.merge(started)
        assert await here.owner(written) == "u1"
        assert started.contact.name == "Ada"
        (contact,) = [await here.here.store.read(lambda reader: reader.contact(PROJECT.rowid, "u1"))]
        assert contact is not None
        # Another person may have entered the address in this browser, and would get the replies.
        assert (contact.name, contact.email) == ("Ada", None)
        assert (await here.session(token)).ended_at is not None
        assert len(await here.events("contact.merged")) == 1


async def test_upgrade_can_be_repeated_at_any_point(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        token = here.token()
        written = await here.write(token)
        await here.sign_in("u1", token)  # its answer was lost before the merge
        started = await here.sign_in("u1", token)
        await here.merge(started)  # its answer was lost after the merge
        again = await here.sign_in("u1", token)
        assert again.visitor == started.visitor
        await here.merge(again)
        assert await here.owner(written) == "u1"
        assert len(await here.events("contact.merged")) == 1
        stranger = await here.sign_in("u2", token)
        assert stranger.visitor is None  # the ended token shows nothing to another identity


async def test_visitor_without_a_message_is_not_merged(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        started = await here.sign_in("u1", here.token())
        assert (started.visitor, started.ended) == (None, False)


async def test_verified_contact_is_never_merged_by_a_browser(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        token = here.token()
        written = await here.write(token, email="ada@x.example")
        visitor = written.contact.user_id
        await here.here.store.write(
            lambda tx: start_session(
                tx,
                SignIn(PROJECT, here.channel, visitor, {}, None, hash_token("ct_x"), ""),
                here.clock(),
            )
        )  # a backend signs the id that a visitor got
        started = await here.sign_in("u1", token)
        assert started.visitor is None
        same = await here.sign_in("u2", email="ada@x.example")
        assert same.contact.id != started.contact.id
        assert await here.owner(written) == visitor


async def test_other_identity_of_the_browser_ends_the_session_and_merges_nothing(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        token = new_session_token()
        wanted = SignIn(PROJECT, here.channel, "u1", {}, None, hash_token(token), "")
        await here.here.store.write(lambda tx: start_session(tx, wanted, here.clock()))
        written = await here.write(token)
        other = await here.sign_in("u2", token)
        assert (other.ended, other.visitor, other.resumed) == (True, None, False)
        assert (await here.session(token)).ended_at is not None
        assert await here.owner(written) == "u1"


async def test_merge_by_a_backend_ends_the_sessions_of_the_merged_contact(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        token = here.token()
        written = await here.write(token)
        await here.here.store.write(lambda tx: put_contact(tx, PROJECT, ContactRef("u1", {}), NOON))
        wanted = MergeRequest("u1", written.contact.user_id, by_id=False, actor=SYSTEM)
        await here.merges.merge(PROJECT, wanted)
        assert (await here.session(token)).ended_at is not None
        with pytest.raises(Unauthenticated):
            await here.write(token)


async def test_erased_visitor_leaves_a_row_that_refuses_the_token(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        token = here.token()
        stale = await here.session(token)
        written = await here.write(token, name="Ada")
        await here.erasures.erase(PROJECT, written.contact.user_id)
        left = await here.session(token)
        assert (left.contact, left.context, left.client) == (None, None, "")
        for session in (stale, left):
            with pytest.raises(Unauthenticated):
                await here.write_as(session)
        contact = await here.here.store.read(
            lambda reader: reader.contact(PROJECT.rowid, written.contact.user_id)
        )
        assert contact is None


async def test_session_of_another_project_is_none_of_this_contact(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        token = here.token()
        await here.write(token)
        contact = await here.here.store.write(
            lambda tx: put_contact(tx, OTHER_PROJECT, ContactRef("u1", {}), NOON)
        )
        listed = await here.here.store.read(
            lambda reader: reader.customer_sessions(contact.rowid, here.clock(), 1 << 40, 10)
        )
        assert [*listed] == []


async def test_expired_rows_are_deleted_once_their_tokens_can_not_be_used(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        token = here.token()
        await here.write(token)
        start = here.clock()

        async def pruned(now: int) -> int:
            return int(
                await here.here.store.write(lambda tx: tx.prune_customer_sessions(now, now - IDLE_MS, 10))
            )

        rowid = (await here.session(token)).rowid
        assert rowid is not None
        await here.here.store.write(lambda tx: tx.end_customer_session(rowid, start))
        assert await pruned(start + IDLE_MS - 60_000) == 0  # without a row, the token would count again
        assert await pruned(start + IDLE_MS + 60_000) == 1
        late = await here.session(token)
        assert late.rowid is None
        with pytest.raises(Unauthenticated):
            check_live(late, start + IDLE_MS + 60_000)


def test_use_moves_the_expiry_up_to_a_maximum_age() -> None:
    assert expiry(NOON, NOON) == NOON + IDLE_MS
    assert expiry(NOON, NOON + IDLE_MS) == NOON + 2 * IDLE_MS
    assert expiry(NOON, NOON + LONGEST_MS - 1) == NOON + LONGEST_MS


async def test_disabled_channel_refuses_the_first_message(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        session = await here.session(here.token())
        off = replace(here.channel, enabled=False)
        with pytest.raises(Conflict, match="disabled"):
            await here.write_as(replace(session, channel=off))


async def test_upgrade_survives_the_end_of_the_process_after_its_first_commit(tmp_path: Path) -> None:
    async with customers(tmp_path) as here:
        token = here.token()
        written = [await here.write(token) for _ in range(3)]
        started = await here.sign_in("u1", token)
        assert started.visitor is not None
        wanted = MergeRequest(started.contact.id, started.visitor, by_id=True, actor=SYSTEM)
        # The process ends after the commit that begins the merge: no conversation has moved yet.
        await here.here.store.write(lambda tx: start_merge(tx, PROJECT, wanted, 1, here.clock()))
        channel = here.channel
    async with customers(tmp_path, channel) as here:
        await here.merges.resume()
        again = await here.sign_in("u1", token)
        assert again.visitor == started.visitor
        await here.merge(again)
        assert {await here.owner(each) for each in written} == {"u1"}
        assert len(await here.events("contact.merged")) == 1
        with pytest.raises(Unauthenticated):
            await here.write(token)
