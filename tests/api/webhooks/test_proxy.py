"""The service with `DESKWIRE_WEBHOOK_PROXY`: connections and delivery log.

Source: ADR 6.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import trio

from tests.support.api.service import running
from tests.support.deadlines import HANG_TIMEOUT_S

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
REFUSAL = b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"
NAME = "receiver.test"  # no name server resolves it


async def _answer(answer: bytes, heads: trio.MemorySendChannel[str], stream: trio.SocketStream) -> None:
    """Record the head of one request and send this response."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += await stream.receive_some(65_536)
    await heads.send(got.partition(b"\r\n\r\n")[0].decode())
    await stream.send_all(answer)
    await stream.aclose()


async def _proxy(nursery: trio.Nursery, answer: bytes) -> tuple[str, trio.MemoryReceiveChannel[str]]:
    """Yield the URL of a proxy with this response, and the heads of its requests."""
    heads, asked = trio.open_memory_channel[str](100)
    serve = partial(trio.serve_tcp, partial(_answer, answer, heads), 0, host="127.0.0.1")
    (listener,) = await nursery.start(serve)
    return f"http://ada:pw@127.0.0.1:{listener.socket.getsockname()[1]}", asked


async def test_a_webhook_with_a_name_that_only_the_proxy_knows_is_registered_and_sent_through_it(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    url, asked = await _proxy(nursery, ANSWER)
    async with running(tmp_path, webhook_proxy=url) as service:
        answer = await service.http.post("/s2s/webhooks", json={"url": f"http://{NAME}:8443/hook"})
        assert answer.status_code == 200, answer.text
        await service.create()
        with trio.fail_after(HANG_TIMEOUT_S):
            head = await asked.receive()
    assert head.startswith(f"POST http://{NAME}:8443/hook HTTP/1.1\r\nHost: {NAME}:8443\r\n")
    assert "\r\nProxy-Authorization: Basic YWRhOnB3\r\n" in head


async def test_refusals_of_the_proxy_are_in_the_delivery_log(tmp_path: Path, nursery: trio.Nursery) -> None:
    """Decisions 6: the delivery log contains the reason of a refusal, even for an address in a URL."""
    url, asked = await _proxy(nursery, REFUSAL)
    async with running(tmp_path, webhook_proxy=url, allow_private_webhooks=False) as service:
        inside = await service.http.post("/s2s/webhooks", json={"url": "https://0x7f.1:8443/"})
        assert inside.status_code == 422
        assert "127.0.0.1 is loopback" in inside.text
        made = await service.http.post("/s2s/webhooks", json={"url": f"https://{NAME}:8443/hook"})
        assert made.status_code == 200, made.text
        await service.create()
        with trio.fail_after(HANG_TIMEOUT_S):
            assert (await asked.receive()).startswith(f"CONNECT {NAME}:8443 HTTP/1.1\r\n")
            log = f"/s2s/webhooks/{made.json()['id']}/deliveries"
            text = ""
            while "proxy: status 407" not in text:  # the log is the only source
                await trio.sleep(0.05)  # poll: there is no notification
                text = (await service.http.get(log)).text
    assert "proxy: status 407, proxy authentication required" in text
    assert "ada:pw" not in text
