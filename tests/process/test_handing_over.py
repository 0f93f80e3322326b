"""The listening socket outlives the process: a restart refuses no connection (ADR 38)."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.test_serve import ENVIRON, Server, servers
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.socket_activation import HasDescriptor

pytestmark = pytest.mark.long

__all__ = ["servers"]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A listening socket that stays."""
    with socket.create_server(("127.0.0.1", 0), backlog=1_000) as listener:
        yield listener


def port_of(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def answered(port: int, host: str = "127.0.0.1") -> int:
    """The status of one call on a connection of its own. Raises OSError or HTTPException where there is none."""
    connection = http.client.HTTPConnection(host, port, timeout=HANG_TIMEOUT_S)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status
    finally:
        connection.close()


class Caller(threading.Thread):
    """Connects and calls, again and again, until it is stopped."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.statuses: list[int] = []
        self.failures: list[str] = []
        self.enough = threading.Event()
        self._port = port

    def run(self) -> None:
        while not self.enough.is_set():
            try:
                self.statuses.append(answered(self._port))
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))

    def more(self) -> None:
        """Wait for one more answer, or failure."""
        before = len(self.statuses) + len(self.failures)
        while len(self.statuses) + len(self.failures) == before:
            time.sleep(0.01)  # poll: there is no notification


def test_connections_during_a_restart_wait_and_are_answered(
    tmp_path: Path, servers: list[Server], listener: socket.socket
) -> None:
    servers.append(Server(tmp_path, "--no-demo", handed=[listener]))
    assert f"127.0.0.1:{port_of(listener)}" in servers[-1].wait_ready()
    callers = [Caller(port_of(listener)) for _ in range(4)]
    for each in callers:
        each.start()
    for _ in range(2):
        for each in callers:
            each.more()
        assert servers[-1].end()[0] == 0
        servers.append(Server(tmp_path, "--no-demo", handed=[listener]))
        servers[-1].wait_ready()
    for each in callers:
        each.more()
        each.enough.set()
    for each in callers:
        each.join()
    assert [failure for each in callers for failure in each.failures] == []
    assert {status for each in callers for status in each.statuses} == {200}


def test_all_sockets_are_served_and_the_settings_port_is_left_alone(
    tmp_path: Path, servers: list[Server], listener: socket.socket
) -> None:
    with (
        socket.create_server(("::1", 0), family=socket.AF_INET6) as other,
        socket.create_server(("127.0.0.1", 0)) as taken,
    ):
        options = ("--no-demo", "--port", str(port_of(taken)))
        servers.append(
            server := Server(tmp_path, *options, handed=[other, listener], LISTEN_FDNAMES="six:four")
        )
        assert f"http://[::1]:{port_of(other)}" in server.wait_ready()
        assert [answered(port_of(listener)), answered(port_of(other), "::1")] == [200, 200]
        status, _, log = server.end()
    assert status == 0
    assert '"event": "program.stopping"' in log


def single_connection() -> socket.socket:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return socket.create_connection(listener.getsockname())


def at_a_path() -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(tempfile.mkdtemp(prefix="deskwire-") + "/listening")
    listener.listen()
    return listener


def test_sockets_that_can_not_be_served_are_all_named_with_the_reason(
    tmp_path: Path, servers: list[Server], listener: socket.socket
) -> None:
    with (
        (tmp_path / "file").open("w") as file,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        single_connection() as connection,
        at_a_path() as path,
    ):
        handed: list[HasDescriptor] = [listener, file, datagrams, connection, path]
        servers.append(
            server := Server(tmp_path / "data", handed=handed, LISTEN_FDNAMES="web:log:dns:one:local")
        )
        _, said = server.process.communicate(timeout=HANG_TIMEOUT_S)
    assert server.process.returncode == 1
    assert "Traceback" not in said
    assert "descriptor 3" not in said
    reasons = (
        "4 (log) is not a socket",
        "5 (dns) is not a TCP socket",
        "6 (one) does not listen",
        "7 (local) is not a TCP socket",
    )
    assert all(reason in said for reason in reasons), said
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("count", ["", "-1", "many", "101"])
def test_invalid_socket_count_ends_the_start(count: str) -> None:
    code = (
        'import os; os.environ["LISTEN_PID"] = str(os.getpid()); from deskwire.cli import cli; cli(["serve"])'
    )
    environ = {**ENVIRON, "LISTEN_FDS": count}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"LISTEN_FDS must be a number up to 100, not {count!r}" in done.stderr


def test_sockets_for_another_process_are_left_alone(tmp_path: Path, servers: list[Server]) -> None:
    servers.append(server := Server(tmp_path, "--port", "0", LISTEN_PID=str(os.getpid()), LISTEN_FDS="1"))
    server.wait_ready()
    assert server.demo["baseUrl"].startswith("http://127.0.0.1:")
    assert "systemd.sockets_for_another" in server.end()[2]


@pytest.mark.parametrize("abstract", [False, True])
def test_manager_is_notified_of_readiness_and_of_the_stop(
    tmp_path: Path, servers: list[Server], abstract: bool
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.settimeout(HANG_TIMEOUT_S)
        address = f"@deskwire-{os.getpid()}" if abstract else str(tmp_path / "told")
        told.bind(address.replace("@", "\0", 1) if abstract else address)
        servers.append(server := Server(tmp_path / "data", "--port", "0", NOTIFY_SOCKET=address))
        assert told.recv(100) == b"READY=1"
        port = int(server.demo["baseUrl"].rpartition(":")[2])
        assert answered(port) == 200
        server.process.send_signal(signal.SIGTERM)
        assert told.recv(100) == b"STOPPING=1"
        server.process.communicate(timeout=HANG_TIMEOUT_S)
    assert server.process.returncode == 0


def test_failed_notification_of_the_manager_changes_nothing(tmp_path: Path, servers: list[Server]) -> None:
    servers.append(server := Server(tmp_path, "--port", "0", NOTIFY_SOCKET=str(tmp_path / "nobody")))
    server.wait_ready()
    status, _, log = server.end()
    assert (status, log.count("systemd.not_told")) == (0, 2)


ACTIVATE = shutil.which("systemd-socket-activate")


@pytest.mark.skipif(ACTIVATE is None, reason="there is no systemd-socket-activate to start it")
def test_systemds_own_tool_starts_it_with_the_first_client(tmp_path: Path) -> None:
    assert ACTIVATE is not None
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = port_of(free)
    command = [sys.executable, "-m", "deskwire", "serve", "--no-demo", "--data", str(tmp_path)]
    activated = [ACTIVATE, "-l", f"127.0.0.1:{port}", *command]
    with subprocess.Popen(activated, env=ENVIRON, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert "Listening on" in process.stderr.readline()
            assert answered(port) == 200
        finally:
            process.terminate()
            process.communicate(timeout=HANG_TIMEOUT_S)
    assert process.returncode == 0
