"""The operator beside a running server: at once, safely, and whatever else knocks at the socket."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from deskwire.commands.admin.client import SOCKET_FILE, NoResponseError, send_command
from deskwire.program import admin_socket as admin
from deskwire.program.admin_socket import COMMAND_BYTES_MAX, CONCURRENT_COMMANDS_MAX
from tests.support.api.service import Service, running
from tests.support.sockets.admin_socket import operate
from tests.support.sockets.server_process import Server, environment

CAN_BE_ANOTHER = os.geteuid() == 0 and hasattr(socket, "SO_PEERCRED")


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Run a service on an empty directory."""
    async with running(tmp_path) as started:
        yield started


async def talk(service: Service, *parts: bytes, end: bool = False) -> bytes:
    """Send these bytes to the socket, and return its response until it closes."""
    async with await trio.open_unix_socket(service.directory / SOCKET_FILE) as stream:
        for part in parts:
            await stream.send_all(part)
        if end:
            await stream.send_eof()
        said = b""
        async for data in stream:
            said += data
        return said


async def test_created_key_works_at_once_and_a_revoked_one_fails_at_once(service: Service) -> None:
    made = await operate(service, "key.create", label="live")
    headers = {"Authorization": f"Bearer {made['key']}"}
    assert (await service.http.get("/s2s/project", headers=headers)).status_code == 200
    await operate(service, "key.revoke", key=made["id"])
    assert (await service.http.get("/s2s/project", headers=headers)).status_code == 401


async def test_a_new_project_can_be_used_at_once(service: Service) -> None:
    await operate(service, "project.create", project={"name": "Bank"})
    key = (await operate(service, "key.create", project="Bank", label="x"))["key"]
    headers = {"Authorization": f"Bearer {key}"}
    made = await service.http.post("/s2s/conversations", json={"contact": {"userId": "u"}}, headers=headers)
    assert made.status_code == 200
    assert len((await service.http.get("/s2s/events", headers=headers)).json()["items"]) == 1


async def test_a_password_that_the_operator_sets_ends_the_users_tokens(service: Service) -> None:
    assert (await service.dashboard.get("/users/me")).status_code == 200
    await operate(
        service, "user.password", user=service.demo["user"]["email"], password="another long password"
    )
    refused = await service.dashboard.get("/users/me")
    assert (refused.status_code, refused.json()["code"]) == (401, "token_expired")


async def test_orders_and_commands_of_the_api_go_side_by_side(service: Service) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(partial(operate, service, "key.create", label=f"key {number}"))
            nursery.start_soon(service.create, f"u{number}")
    assert len((await operate(service, "key.list"))["items"]) == 21
    assert len(await service.events()) == 20


async def test_socket_belongs_to_its_owner_and_is_removed_at_the_stop(tmp_path: Path) -> None:
    async with running(tmp_path):
        mode = (tmp_path / SOCKET_FILE).stat().st_mode
        assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
    assert not (tmp_path / SOCKET_FILE).exists()


@pytest.mark.skipif(not CAN_BE_ANOTHER, reason="needs root on Linux, to be another user")
async def test_another_system_user_gets_no_answer_even_with_access_to_the_file(service: Service) -> None:
    path = service.directory / SOCKET_FILE
    path.chmod(0o666)
    program = """if True:
        import os, socket, sys
        os.chdir(sys.argv[1])
        os.setuid(65534)
        peer = socket.socket(socket.AF_UNIX)
        peer.connect("admin.sock")
        try:
            peer.sendall(b'{"operation": "org.rename", "arguments": {}}\\n')
            print(len(peer.recv(100)))
        except (BrokenPipeError, ConnectionResetError):
            print(0)
    """
    service.directory.chmod(0o755)
    done = await trio.run_process(
        [sys.executable, "-c", program, str(service.directory)],
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    assert done.stdout == b"0\n", done.stderr.decode()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"nonsense\n",
        b"[]\n",
        b'{"operation": "org.rename"}\n',
        b'{"operation": "rm", "arguments": {}}\n',
        b'{"operation": "org.rename", "arguments": {"x": 1}}\n',
        b'{"operation": "org.create", "arguments": 5}\n',
        b"x" * COMMAND_BYTES_MAX,
    ],
)
async def test_nonsense_is_refused_and_the_next_order_is_carried_out(service: Service, line: bytes) -> None:
    said = await talk(service, line, end=True)
    assert not said or "refusal" in json.loads(said)
    assert (await operate(service, "org.rename", name="Acme"))["name"] == "Acme"


async def test_an_order_that_is_too_long_is_not_read_to_its_end(service: Service) -> None:
    try:
        said = await talk(service, *[b"x" * 8_192] * 100)
    except trio.BrokenResourceError:
        said = b""
    assert said == b""


async def test_silent_peers_do_not_lock_the_operator_out(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "COMMAND_TIMEOUT_S", 0.3)
    silent = [
        await trio.open_unix_socket(service.directory / SOCKET_FILE)
        for _ in range(CONCURRENT_COMMANDS_MAX + 2)
    ]
    await trio.testing.wait_all_tasks_blocked(0.05)  # the server has accepted them, with the short timeout
    monkeypatch.setattr(admin, "COMMAND_TIMEOUT_S", 30.0)
    assert (await operate(service, "org.rename", name="Acme"))["name"] == "Acme"
    for stream in silent:
        await stream.aclose()


async def test_command_without_an_answer_is_reported_as_undecided(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / SOCKET_FILE))
    listener.listen(1)

    async def hang_up() -> None:
        peer, _ = await trio.to_thread.run_sync(listener.accept)
        peer.recv(10)
        peer.close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hang_up)
        with pytest.raises(NoResponseError, match="check whether"):
            await trio.to_thread.run_sync(send_command, tmp_path, "org.rename", b"{}")
    listener.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="a long path needs /proc")
async def test_path_that_is_too_long_for_a_socket_works_too(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 100) / ("e" * 100)
    directory.mkdir(parents=True)
    async with running(directory) as service:
        assert (await operate(service, "org.rename", name="Acme"))["name"] == "Acme"


async def test_a_directory_that_can_hold_no_socket_is_served_without_one(tmp_path: Path) -> None:
    (tmp_path / SOCKET_FILE).mkdir()
    async with running(tmp_path) as service:
        assert (await service.http.get("/s2s/project")).status_code == 200
        assert await trio.to_thread.run_sync(send_command, tmp_path, "org.rename", b"{}") is None


async def test_the_command_line_reaches_a_server_and_after_a_crash_does_without(tmp_path: Path) -> None:
    server = Server(tmp_path, "--no-demo")
    try:
        assert (await command(tmp_path, "org", "create", "Acme"))[0] == 0
        await server.start()
        status, project = await command(tmp_path, "project", "create", "Shop")
        assert (status, project[:4]) == (0, "prj_")
        _, key = await command(tmp_path, "key", "create")
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, trust_env=False) as http:
            said = (await http.get(f"{server.url}/v3/s2s/project")).json()
            assert said["id"] == project
            await server.kill()
            assert (tmp_path / "data" / SOCKET_FILE).exists()
            assert await command(tmp_path, "project", "list", "--json") == (
                0,
                json.dumps([await shown(tmp_path)], indent=2),
            )
            await server.start()
            assert (await command(tmp_path, "project", "set", "--name", "Bank"))[0] == 0
            assert (await http.get(f"{server.url}/v3/s2s/project")).json()["name"] == "Bank"
        assert "sk_" not in server.log()
    finally:
        await server.stop()


async def shown(directory: Path) -> Any:
    return json.loads((await command(directory, "project", "show", "--json"))[1])


async def command(directory: Path, *arguments: str) -> tuple[int, str]:
    """Exit status and stdout of a command in a process of its own."""
    done = await trio.run_process(
        [sys.executable, "-m", "deskwire", *arguments, "--data", str(directory / "data")],
        capture_stdout=True,
        stderr=subprocess.DEVNULL,
        env=environment(),
        check=False,
    )
    return done.returncode, done.stdout.decode().rstrip("\n")
