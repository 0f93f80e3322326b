"""pusher-js as published, over wss, with nothing in between (ADR 25)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.client import Launch
from tests.interop.proxy import proxying
from tests.interop.stage import Stage, port_of
from tests.support.api.service import running
from tests.support.sockets.certificates import Files

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("node")]


async def test_pusher_js_subscribes_and_receives_over_tls(
    tmp_path: Path, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(tmp_path)
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(files.ca))
    async with (
        running(tmp_path / "data", files.trust, **files.settings) as service,
        proxying(port_of(service)) as unused,
    ):
        stage = Stage(service, unused, launch, direct=True)
        client = await stage.pusher_js("one", forceTLS=True)
        sent = await stage.talk(3)
        await client.have(sent)
        assert client.events == sent
