"""The stream behind proxies that pool connections: a websocket on a connection that carried calls before (ADR 7)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import pytest
import trio

from tests.interop.proxy import proxying
from tests.protocol.test_behind_nginx import BUFFERS, HEAD, listening
from tests.support.api.service import running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.raw_peer import RawPeer, upgrade
from tests.support.sockets.server_process import free_port

STREAMS: Final = 60
CALLS: Final = ("/v3/s2s/project", "/v3/s2s/events?wait=0")
"""A path that the fast path answers, and one that Quart answers."""

_NGINX: Final = """
upstream deskwire {{ server 127.0.0.1:{upstream}; keepalive 32; }}
server {{
  listen {port};
  location / {{
    proxy_pass http://deskwire;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
  }}
  location /app/ {{
    proxy_pass http://deskwire;
    proxy_http_version 1.1;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection "upgrade";
  }}
}}
}}
"""
_APACHE: Final = """
ServerRoot {folder}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {folder}/pid
ErrorLog {folder}/error.log
Mutex default:{folder}
DefaultRuntimeDir {folder}
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
User www-data
Group www-data
StartServers 1
ServerLimit 1
ThreadLimit 100
ThreadsPerChild 100
MaxRequestWorkers 100
ProxyPass / http://127.0.0.1:{upstream}/ upgrade=websocket
"""
_HAPROXY: Final = """
defaults
  mode http
  http-reuse always
  timeout connect 10s
  timeout client 60s
  timeout server 60s
frontend in
  bind 127.0.0.1:{port}
  default_backend deskwire
backend deskwire
  server deskwire 127.0.0.1:{upstream}
"""


@dataclass(frozen=True)
class Kind:
    """A kind of proxy.

    Args:
        program: the name of its executable.
        configuration: template with its folder, its port, and the port of the service.
        command: returns the arguments for a folder, whose `proxy.conf` is the configuration.
    """

    program: str
    configuration: str
    command: Callable[[Path], list[str]]


KINDS: Final = {
    "nginx": Kind(
        "nginx",
        HEAD.replace("{0}", "{folder}")
        + "".join(f"{each}_temp_path {{folder}}/{each};\n" for each in BUFFERS)
        + _NGINX,
        lambda folder: ["-p", str(folder), "-e", "stderr", "-c", f"{folder}/proxy.conf"],
    ),
    "Apache": Kind("apache2", _APACHE, lambda folder: ["-f", f"{folder}/proxy.conf", "-D", "FOREGROUND"]),
    "HAProxy": Kind("haproxy", _HAPROXY, lambda folder: ["-db", "-f", f"{folder}/proxy.conf"]),
}


@asynccontextmanager
async def before(kind: Kind, folder: Path, upstream: int) -> AsyncIterator[int]:
    """Run a proxy of this kind before a port; yield its own port."""
    port = free_port()
    (folder / "proxy.conf").write_text(kind.configuration.format(folder=folder, port=port, upstream=upstream))
    process = await trio.lowlevel.open_process(
        [kind.program, *kind.command(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        with trio.fail_after(HANG_TIMEOUT_S):
            await listening(port)
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # Apache takes seconds to end in order
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 10):
            await process.wait()


@pytest.mark.parametrize("name", KINDS)
async def test_each_of_sixty_websockets_among_calls_is_served(tmp_path: Path, name: str) -> None:
    kind = KINDS[name]
    if shutil.which(kind.program) is None:
        pytest.skip(f"{kind.program} is not installed")
    async with (
        running(tmp_path / "data") as service,
        proxying(int(service.url.rpartition(":")[2])) as counted,
        before(kind, tmp_path, counted.port) as port,
        AsyncExitStack() as streams,
    ):
        key = {"Authorization": f"Bearer {service.demo['serverKey']}"}
        served, on_used = 0, 0
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", headers=key, timeout=HANG_TIMEOUT_S
        ) as client:
            for number in range(STREAMS):
                for _ in range(3):
                    assert (await client.get(CALLS[number % len(CALLS)])).status_code == 200
                known = counted.connections
                with trio.move_on_after(10):
                    peer = RawPeer(
                        await streams.enter_async_context(await trio.open_tcp_stream("127.0.0.1", port))
                    )
                    head = await peer.open(upgrade("?protocol=7", service.demo["streamKey"]))
                    if b" 101 " in head:
                        served += (await peer.message())["event"] == "pusher:connection_established"
                on_used += counted.connections == known
    assert served == STREAMS
    assert (
        on_used > STREAMS // 2
    )  # nearly all, because a connection may be returned a moment after its response
