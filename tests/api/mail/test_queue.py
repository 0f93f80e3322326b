"""Mails of a running service: sent by the queue, retried, given up with a reason, and the same for every address."""

from __future__ import annotations

import re
import statistics
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from deskwire.engine.mail import queue
from tests.support.api.audit_trail import whole
from tests.support.api.browsers import staff
from tests.support.api.links import INVITED, invite, token_of, use
from tests.support.api.openapi_check import caller
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, code, organisation_of, sign_in
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import free_port
from tests.support.sockets.smtp_server import Mailbox, Taken, mail_server
from tests.support.stores import beside

NEW = "seven tidy otters swim"


@asynccontextmanager
async def mailing(directory: Path, port: int, **more: Any) -> AsyncIterator[Service]:
    """Run a service that sends mails to a port of this machine."""
    settings = {"smtp_host": "127.0.0.1", "smtp_from": "Desk <desk@example.com>", "smtp_security": "none"}
    async with running(directory, smtp_port=port, **settings, **more) as service:
        yield service


@pytest.fixture
async def mailbox() -> AsyncIterator[Mailbox]:
    """Yield a server that takes every mail."""
    with mail_server() as taken:
        yield taken


def link_in(mail: Taken) -> str:
    """Return the link in a mail."""
    found = re.search(r"http\S+/desk/link#[\w-]{43}", mail.message.get_content())  # type: ignore[attr-defined]
    assert found is not None
    token_of(found[0])
    return found[0]


async def listed(service: Service, status: str) -> dict[str, Any]:
    """Wait until the mail of the only invitation has a status, and return the invitation."""
    path = f"/organisations/{await organisation_of(service)}/invitations"
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            (found,) = (await service.dashboard.get(path)).json()["items"]
            if found["mail"]["status"] == status and (status != "waiting" or found["mail"]["error"]):
                return dict(found)
            await trio.sleep(0.1)


async def left(service: Service, count: int) -> None:
    """Wait until this number of mails is stored."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            with beside(service.directory) as connection:
                if connection.execute("SELECT count(*) FROM mails").fetchone()[0] == count:
                    return
            await trio.sleep(0.1)


async def ask(service: Service, email: str) -> int:
    """Ask for a new password."""
    async with caller(f"{service.url}/v3", {}) as http:
        return (await http.post("/auth/password-links", json={"email": email})).status_code


async def test_invitation_is_mailed_and_its_link_works(tmp_path: Path, mailbox: Mailbox) -> None:
    async with mailing(tmp_path, mailbox.port) as service:
        invitation = (await invite(service, name="Ada")).json()
        token_of(invitation["url"])
        assert (invitation["mailed"], invitation["mail"]["status"]) == (True, "waiting")
        mail = await mailbox.first()
        assert mail.message["Subject"] == "Invitation to Demo organisation"
        assert mail.message["From"] == "Desk <desk@example.com>"
        assert mail.recipients == [INVITED]
        assert link_in(mail) == invitation["url"]
        assert (await listed(service, "sent"))["mail"]["error"] is None
        assert (await use(service, link_in(mail))).status_code == 200
        with beside(service.directory) as connection:
            assert (
                connection.execute("SELECT count(*) FROM mails WHERE sealed IS NOT NULL").fetchone()[0] == 0
            )


async def test_stored_mail_shows_no_token(tmp_path: Path) -> None:
    async with mailing(tmp_path, free_port()) as service:
        token = token_of((await invite(service, name="Ada")).json()["url"])
        with beside(service.directory) as connection:
            (sealed,) = connection.execute("SELECT sealed FROM mails").fetchone()
        assert token.encode() not in bytes(sealed)


async def test_refused_mail_is_given_up_with_a_reason_for_the_inviter(
    tmp_path: Path, mailbox: Mailbox
) -> None:
    mailbox.replies[INVITED] = "550 5.1.1 no such user"
    async with mailing(tmp_path, mailbox.port) as service:
        token_of((await invite(service)).json()["url"])
        failed = await listed(service, "failed")
        assert failed["mail"]["error"] == "the server refused the recipient: 550 5.1.1 no such user"
        metrics = (await service.http.get(f"{service.url}/metrics")).text
        assert 'deskwire_mails_total{outcome="given_up"} 1.0' in metrics
        assert "deskwire_mails_failed 1.0" in metrics
        mailbox.replies.clear()
        path = f"/organisations/{await organisation_of(service)}/invitations/{failed['id']}/renew"
        renewed = (await service.dashboard.post(path)).json()
        assert link_in(await mailbox.first()) == renewed["url"]


async def test_mail_is_retried_while_the_server_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "RETRY_DELAYS_S", (1,))
    async with mailing(tmp_path, port := free_port()) as service:
        token_of((await invite(service)).json()["url"])
        waiting = await listed(service, "waiting")
        assert waiting["mail"]["error"] == "the server can't be reached: Connection refused"
        with mail_server(port=port) as mailbox:
            await mailbox.first()
            await listed(service, "sent")
            assert len(mailbox.taken) == 1


async def test_mail_of_a_stopped_service_is_sent_by_the_next_one(tmp_path: Path, mailbox: Mailbox) -> None:
    async with mailing(tmp_path, free_port()) as service:
        token_of((await invite(service)).json()["url"])
        await listed(service, "waiting")
    with beside(tmp_path) as connection:
        connection.execute("UPDATE mails SET due_at = 0")
    async with mailing(tmp_path, mailbox.port) as service:
        await mailbox.first()
        await listed(service, "sent")


async def test_revoked_invitation_is_not_mailed(tmp_path: Path) -> None:
    async with mailing(tmp_path, free_port()) as service:
        invitation = (await invite(service)).json()
        token_of(invitation["url"])
        await service.dashboard.delete(
            f"/organisations/{await organisation_of(service)}/invitations/{invitation['id']}"
        )
        with beside(service.directory) as connection:
            assert connection.execute("SELECT count(*) FROM mails").fetchone()[0] == 0


async def test_owner_of_an_account_gets_a_link_by_mail(tmp_path: Path, mailbox: Mailbox) -> None:
    async with mailing(tmp_path, mailbox.port) as service:
        hired = await staff(service, "agent")
        assert (await service.dashboard.get("/auth/methods")).json()["forgottenPassword"] == "mail"
        assert await ask(service, hired["email"].upper()) == 200
        mail = await mailbox.first()
        assert mail.recipients == [hired["email"]]
        assert mail.message["Subject"] == "Choose a new password for Deskwire"
        assert (await use(service, link_in(mail), NEW)).status_code == 200
        assert (await sign_in(service, hired["email"], NEW)).status_code == 200
        assert code(await use(service, link_in(mail), PASSWORD)) == (410, "link_ended")
        made = [each for each in await whole(service) if each["action"] == "account.password_link_created"]
        assert [each["actor"]["type"] for each in made] == ["system"]


async def test_unknown_address_gets_the_same_answer_and_no_mail(tmp_path: Path, mailbox: Mailbox) -> None:
    async with mailing(tmp_path, mailbox.port) as service:
        hired = await staff(service, "agent")
        async with caller(f"{service.url}/v3", {}) as http:
            answers = [
                await http.post("/auth/password-links", json={"email": email})
                for email in ("nobody@example.com", "not an address", hired["email"])
            ]
        assert {(each.status_code, each.text) for each in answers} == {(200, answers[0].text)}
        assert (await mailbox.first()).recipients == [hired["email"]]
        await left(service, 1)
        assert len(mailbox.taken) == 1


async def test_address_gets_three_mails_an_hour_at_most(tmp_path: Path, mailbox: Mailbox) -> None:
    async with mailing(tmp_path, mailbox.port) as service:
        hired = await staff(service, "agent")
        assert [await ask(service, hired["email"]) for _ in range(5)] == [200] * 5
        with beside(service.directory) as connection:
            assert connection.execute("SELECT count(*) FROM mails").fetchone()[0] == 3
        await mailbox.first(3)


async def test_account_of_an_identity_provider_gets_no_password(tmp_path: Path, mailbox: Mailbox) -> None:
    async with mailing(tmp_path, mailbox.port) as service:
        hired = await staff(service, "agent")
        with beside(service.directory) as connection:
            connection.execute("UPDATE users SET password_hash = NULL WHERE id = ?", (hired["id"],))
        await ask(service, hired["email"])
        await left(service, 0)
        assert mailbox.taken == []


@pytest.mark.thorough
async def test_known_and_unknown_addresses_take_the_same_time(tmp_path: Path) -> None:
    async with mailing(tmp_path, free_port()) as service:
        hired = [await staff(service, "agent", f"a{number}@example.com") for number in range(12)]
        async with caller(f"{service.url}/v3", {}) as http:

            async def timed(email: str) -> float:
                began = trio.current_time()
                await http.post("/auth/password-links", json={"email": email})
                return trio.current_time() - began

            known, unknown = list[float](), list[float]()
            for number, each in enumerate(hired):
                known.append(await timed(each["email"]))
                unknown.append(await timed(f"b{number}@example.com"))
        ratio = statistics.median(known) / statistics.median(unknown)
        assert 0.5 < ratio < 2
