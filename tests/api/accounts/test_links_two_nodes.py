"""Links and mails of two nodes on one database: each link is used once, and each mail is sent once."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.support.api.links import invited, token_of, use
from tests.support.api.service import Service, running
from tests.support.api.staff import code, organisation_of
from tests.support.sockets.smtp_server import Mailbox, mail_server


@pytest.fixture
async def mailing(tmp_path: Path, postgres_url: str) -> AsyncIterator[tuple[Service, Service, Mailbox]]:
    """Two services on one database, and the server to which they send mails."""
    with mail_server() as mailbox:
        settings: dict[str, Any] = {
            "database_url": postgres_url,
            "files": "database",
            "smtp_host": "127.0.0.1",
        }
        settings |= {"smtp_port": mailbox.port, "smtp_from": "desk@example.com", "smtp_security": "none"}
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
        async with running(tmp_path / "a", node="a", **settings) as a:
            for name in ("secret", "demo.json"):
                shutil.copy(tmp_path / "a" / name, tmp_path / "b" / name)
            async with running(tmp_path / "b", node="b", **settings) as b:
                yield a, b, mailbox


async def test_each_link_is_used_at_one_node(mailing: tuple[Service, Service, Mailbox]) -> None:
    here, there, _ = mailing
    for number in range(5):
        url, outcomes = (await invited(here, f"p{number}@example.com", name="P"))["url"], list[int]()

        async def attempt(node: Service, url: str = url, outcomes: list[int] = outcomes) -> None:
            outcomes.append((await use(node, url)).status_code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(attempt, here)
            nursery.start_soon(attempt, there)
        assert sorted(outcomes) == [200, 410]


async def test_link_that_was_renewed_at_one_node_ends_at_the_other(
    mailing: tuple[Service, Service, Mailbox],
) -> None:
    here, there, _ = mailing
    invitation = await invited(here, name="Ada")
    path = f"/organisations/{await organisation_of(here)}/invitations/{invitation['id']}/renew"
    renewed = (await there.dashboard.post(path)).json()
    token_of(renewed["url"])
    assert code(await use(here, invitation["url"])) == (410, "link_ended")
    assert (await use(here, renewed["url"])).status_code == 200


async def test_each_mail_is_sent_by_one_node(mailing: tuple[Service, Service, Mailbox]) -> None:
    here, there, mailbox = mailing
    addresses = [f"p{number}@example.com" for number in range(12)]
    for number, address in enumerate(addresses):
        await invited(there if number % 2 else here, address)
    await mailbox.first(len(addresses))
    # The queue is read once a second. Each later mail comes out of a reading of its own, in which the earlier ones would be sent
    # again if that were possible.
    for number in range(4):
        later = f"later{number}@example.com"
        addresses.append(later)
        await invited(there if number % 2 else here, later)
        await mailbox.first(len(addresses))
    assert Counter(each.recipients[0] for each in mailbox.taken) == Counter(addresses)
