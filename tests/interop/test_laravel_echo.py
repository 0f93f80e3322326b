"""laravel-echo as published: listening with the leading dot, and returning."""

from __future__ import annotations

import pytest

from tests.interop.stage import Stage

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("node")]


@pytest.mark.parametrize("authorization", ["echoHeaders", "echoBearer"])
async def test_echo_receives_messages_and_resumes_after_a_cut(stage: Stage, authorization: str) -> None:
    """Decisions 5: laravel-echo works as published, with `auth.headers` or `bearerToken`."""
    client = await stage.laravel_echo("one", authorization)
    sent = (await stage.talk(5))[1:]  # without `conversation.created`, which it does not listen for
    await client.have(sent)
    await stage.confirmed()
    stage.proxy.cut()
    sent += (await stage.talk(5))[1:]
    await client.subscribed(2)
    await client.have(sent)
    assert client.events == sent
    assert stage.proxy.connections == 2
