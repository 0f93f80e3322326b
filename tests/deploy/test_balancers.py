"""The load balancers' configuration files with the real programs: a stopped node, no ready node, and their own errors."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Final

import httpx
import pytest
import trio

from deskwire.http.description.error_codes import CODES
from tests.deploy.balancers import BALANCERS, DEPLOY, balancing
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.raw_peer import RawPeer, upgrade
from tests.support.sockets.server_process import Server, free_port

_BETWEEN_S: Final = 1.5
_FAST: Final = {"DESKWIRE_STREAM_PING_S": "1", "DESKWIRE_RATE_LIMIT_PER_MINUTE": "0"}
_ENDS_S: Final = {"haproxy": 6.0, "nginx": 5.0, "caddy": 5.0}
"""When a stopped node's streams end: HAProxy by its checks, the others by silence, which is 4 s here instead of 30 and 40."""
_SLACK_S: Final = 4.0  # of a machine with much else to do


def _needs(name: str) -> None:
    if BALANCERS[name].missing:
        pytest.skip(f"{name} is not installed")


async def _reachable(url: str) -> None:
    """Return once the balancer passes calls on."""
    async with httpx.AsyncClient(trust_env=False) as http:
        with trio.fail_after(HANG_TIMEOUT_S):
            while not (await http.get(f"{url}/readyz")).is_success:  # noqa: ASYNC110
                await trio.sleep(0.1)  # poll: there is no notification


@pytest.mark.long
@pytest.mark.parametrize("name", BALANCERS)
async def test_streams_of_a_stopped_node_end_soon(name: str, tmp_path: Path) -> None:
    """HAProxy ends them within some 6 s, whatever the interval of the service's pings."""
    _needs(name)
    environ = _FAST if name != "haproxy" else {}
    server = Server(tmp_path, environ=environ)
    await server.start()
    try:
        async with balancing(name, tmp_path / name, [server.port]) as port:
            await _reachable(f"http://127.0.0.1:{port}")
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                peer = RawPeer(stream)
                assert b" 101 " in await peer.open(upgrade("?protocol=7", server.demo()["streamKey"]))
                assert (await peer.message())["event"] == "pusher:connection_established"
                await trio.sleep(_BETWEEN_S)  # in which it goes on
                os.kill(server.pid, signal.SIGSTOP)
                stopped_at = trio.current_time()
                with trio.move_on_after(_ENDS_S[name] + _SLACK_S):
                    while await stream.receive_some(65_536):
                        pass
                ended_after_s = trio.current_time() - stopped_at
                print(f"{name}: ended {ended_after_s:.1f} s after the stop")
                assert ended_after_s < _ENDS_S[name] + _SLACK_S
    finally:
        os.kill(server.pid, signal.SIGCONT)
        await server.stop()


@pytest.mark.parametrize("name", BALANCERS)
async def test_balancer_without_a_node_answers_in_the_services_form(name: str, tmp_path: Path) -> None:
    _needs(name)
    async with (
        balancing(name, tmp_path / name, [free_port(), free_port()]) as port,
        httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=HANG_TIMEOUT_S
        ) as http,
    ):
        await trio.sleep(3)  # until the checks have found no ready node
        answer = await http.post("/v3/s2s/conversations", json={"contact": {"userId": "u1"}})
        assert answer.status_code in (502, 503)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["retry-after"] == "1"
        document = answer.json()
        assert document.keys() == {"type", "title", "status", "detail", "code", "requestId"}
        assert document["status"] == answer.status_code
        assert document["type"] == f"/docs/errors#{document['code']}"
        assert re.fullmatch(r"req_[0-9a-f-]{32,36}", document["requestId"])


@pytest.mark.parametrize("file", ["haproxy.cfg", "nginx.conf", "Caddyfile", "Caddyfile.nodes"])
def test_balancers_use_documented_codes(file: str) -> None:
    codes = set(re.findall(r'"code":"(\w+)"', (DEPLOY / file).read_text()))
    assert codes
    assert codes <= {each.code for each in CODES}


async def test_nginx_refuses_a_body_that_is_too_large_in_the_services_form(tmp_path: Path) -> None:
    _needs("nginx")
    async with (
        balancing("nginx", tmp_path / "nginx", [free_port()]) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http,
    ):
        answer = await http.post("/v3/uploads", content=b"x" * (27 * 2**20))
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
