"""The load balancers with files in docs/deploy, as real programs in front of real nodes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import trio

from tests.deploy.tools import program
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.root import ROOT
from tests.support.sockets.certificates import Files
from tests.support.sockets.server_process import LOOK_S, free_port

DEPLOY: Final = ROOT / "docs/deploy"
_PORT: Final = re.compile(r"10\.0\.0\.1[123]:8080")
_BUFFERS: Final = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@dataclass(frozen=True)
class Kind:
    """A balancer: its program, its file for nodes at these ports, and how it is started.

    Args:
        made: writes the configuration into a folder, for the balancer's port and those of the nodes.
        command: returns the command for the folder.
        environ: returns the environment for the folder, the balancer's port and those of the nodes.
    """

    program: str
    made: Callable[[Path, int, Sequence[int]], None]
    command: Callable[[Path], Sequence[str]]
    environ: Callable[[Path, int, Sequence[int]], Mapping[str, str]] = field(default=lambda *_: {})

    @property
    def missing(self) -> bool:
        """True if the program is not installed."""
        return program(self.program) is None and shutil.which(self.program) is None


def _with_nodes(text: str, ports: Sequence[int]) -> str:
    """Return the file with one line for each node, and no other nodes."""
    lines = list[str]()
    for block in re.split(r"\n", text):
        number = re.search(r"10\.0\.0\.1([123]):8080", block)
        if number is None:
            lines.append(block)
        elif int(number[1]) <= len(ports):
            lines.append(_PORT.sub(f"127.0.0.1:{ports[int(number[1]) - 1]}", block))
    return "\n".join(lines)


def _haproxy(folder: Path, port: int, ports: Sequence[int]) -> None:
    text = _with_nodes((DEPLOY / "haproxy.cfg").read_text(), ports)
    text = re.sub(r"bind :443 ssl crt \S+", f"bind 127.0.0.1:{port}", text)
    (folder / "haproxy.cfg").write_text(text)


def _nginx(folder: Path, port: int, ports: Sequence[int]) -> None:
    files = Files(folder)
    server = (DEPLOY / "nginx.conf").read_text()
    upstream = _with_nodes((DEPLOY / "nginx.nodes.conf").read_text(), ports)
    server = re.sub(r"upstream deskwire \{.*?\n\}\n", lambda _: upstream, server, count=1, flags=re.DOTALL)
    server = server.replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
    server = re.sub(r"ssl_certificate /\S+;", f"ssl_certificate {files.chain};", server)
    server = re.sub(r"ssl_certificate_key /\S+;", f"ssl_certificate_key {files.key};", server)
    server = re.sub(r"(proxy_read_timeout) (30|20)s", r"\1 4s", server)  # beside pings each second
    buffers = "".join(f"{name}_temp_path {folder}/{name};\n" for name in _BUFFERS)
    head = f"daemon off;\nerror_log stderr;\npid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n"
    (folder / "nginx.conf").write_text(f"{head}{buffers}{server}}}\n")


def _caddy(folder: Path, port: int, ports: Sequence[int]) -> None:
    text = (DEPLOY / "Caddyfile.nodes").read_text()
    (folder / "Caddyfile").write_text(text.replace("read_timeout 40s", "read_timeout 4s"))


def _caddy_environ(folder: Path, port: int, ports: Sequence[int]) -> Mapping[str, str]:
    nodes = " ".join(f"127.0.0.1:{each}" for each in ports)
    admin = f"unix/{folder}/admin"
    return {"SITE": f":{port}", "NODES": nodes, "HOME": str(folder), "CADDY_ADMIN": admin}


BALANCERS: Final = {
    "haproxy": Kind("haproxy", _haproxy, lambda folder: ["-db", "-f", f"{folder}/haproxy.cfg"]),
    "nginx": Kind(
        "nginx",
        _nginx,
        lambda folder: ["-p", str(folder), "-e", "stderr", "-c", f"{folder}/nginx.conf"],
    ),
    "caddy": Kind(
        "caddy",
        _caddy,
        lambda folder: ["run", "--config", f"{folder}/Caddyfile", "--adapter", "caddyfile"],
        _caddy_environ,
    ),
}


@asynccontextmanager
async def balancing(name: str, folder: Path, ports: Sequence[int]) -> AsyncIterator[int]:
    """Run a balancer for nodes at these ports of this machine; yield its port once it listens."""
    kind, port = BALANCERS[name], free_port()
    await trio.Path(folder).mkdir(exist_ok=True)
    kind.made(folder, port, ports)
    path = program(kind.program) or kind.program
    process = await trio.lowlevel.open_process(
        [path, *kind.command(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **kind.environ(folder, port, ports)},
        start_new_session=True,
    )
    try:
        with trio.fail_after(HANG_TIMEOUT_S):
            while not await _listens(port):  # noqa: ASYNC110
                await trio.sleep(LOOK_S)  # poll: there is no notification
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 10):
            await process.wait()


async def _listens(port: int) -> bool:
    try:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
    except OSError:
        return False
    await trio.aclose_forcefully(stream)
    return True
