"""A rotation of the installation's secret keeps what is sealed for people: authenticator apps, and mails that wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskwire.engine.core.encryption import DecryptionFailed, Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.engine.mail import queue
from deskwire.program.secret_file import installation_secrets
from tests.api.accounts.test_second_factor import FrozenClock, challenged, enrolled, finish
from tests.api.mail.test_queue import link_in, listed, mailing
from tests.api.operating.test_secret_rotation import DAY_S, rotate
from tests.support.api.browsers import browser
from tests.support.api.links import invite, token_of, use
from tests.support.sockets.server_process import free_port
from tests.support.sockets.smtp_server import mail_server
from tests.support.stores import beside


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> FrozenClock:
    """The service's clock, which stands still so that no code expires on a busy machine."""
    return FrozenClock(monkeypatch)


def stored(directory: Path) -> list[bytes]:
    """Return what is sealed in the tables of mails and authenticator apps."""
    with beside(directory) as connection:
        rows = connection.execute(
            "SELECT sealed FROM mails WHERE sealed IS NOT NULL UNION ALL SELECT sealed_secret FROM totps"
        )
        return [bytes(row[0]) for row in rows]


@pytest.mark.sqlite  # a file and a socket in the directory: nodes are given theirs by settings
@pytest.mark.parametrize("overlap_s", [DAY_S, 0])
async def test_rotation_keeps_authenticator_apps(tmp_path: Path, overlap_s: int) -> None:
    async with mailing(tmp_path, free_port()) as service, enrolled(service) as (_, phone, codes):
        await rotate(tmp_path, overlap_s)
        async with browser(service) as page:
            answer = await finish(page, await challenged(page), code=phone.code())
            assert answer.status_code == 200, answer.text
        async with browser(service) as page:
            answer = await finish(page, await challenged(page), recoveryCode=codes[0])
            assert answer.status_code == 200, answer.text
        now = Encryption(Secrets(installation_secrets(tmp_path, None).current))
        assert [now.open(each) for each in stored(tmp_path)], "sealed under the current secret alone"


@pytest.mark.sqlite
@pytest.mark.parametrize("overlap_s", [DAY_S, 0])
async def test_rotation_keeps_mails_that_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: FrozenClock, overlap_s: int
) -> None:
    monkeypatch.setattr(queue, "RETRY_DELAYS_S", (1,))
    async with mailing(tmp_path, port := free_port()) as service:
        old = Encryption(Secrets(installation_secrets(tmp_path, None).current))
        url = (await invite(service, name="Ada")).json()["url"]
        token_of(url)
        await listed(service, "waiting")
        await rotate(tmp_path, overlap_s)
        (sealed,) = stored(tmp_path)
        with pytest.raises(DecryptionFailed):
            old.open(sealed)
        clock.now += 60_000  # the retry is due
        with mail_server(port=port) as mailbox:
            mail = await mailbox.first()
            assert link_in(mail) == url
            if overlap_s:  # else the owner's token has ended with the old secret
                await listed(service, "sent")
        assert (await use(service, link_in(mail))).status_code == 200
