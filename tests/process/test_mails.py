"""Mails of a process that is killed: none is lost, and a second copy has the same `Message-ID`."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import httpx
import trio

from tests.support.log_leaks import plant
from tests.support.sockets.server_process import Server
from tests.support.sockets.smtp_server import mail_server, raw_server
from tests.support.stores import beside


def server_with_mail(directory: Path, port: int) -> Server:
    """Return a server that sends mails to a port of this machine."""
    settings = {"HOST": "127.0.0.1", "PORT": str(port), "FROM": "desk@example.com", "SECURITY": "none"}
    return Server(directory, environ={f"DESKWIRE_SMTP_{name}": value for name, value in settings.items()})


async def invite(server: Server) -> None:
    """Invite a person as the demo's owner."""
    demo = server.demo()
    async with httpx.AsyncClient(
        base_url=f"{server.url}/v3", headers={"Authorization": f"Bearer {demo['token']}"}
    ) as http:
        (organisation,) = (await http.get("/organisations")).json()["items"]
        body = {"email": "ada@example.com", "role": "agent"}
        answer = await http.post(f"/organisations/{organisation['id']}/invitations", json=body)
        assert answer.status_code == 200, answer.text
        plant(answer.json()["url"].partition("#")[2])


async def test_mail_of_a_killed_process_is_sent_after_its_restart(tmp_path: Path) -> None:
    with socket.socket() as reserved:  # it refuses connections, and the service gets another port
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        server = server_with_mail(tmp_path, port)
        await server.start()
        await invite(server)
        await server.kill()
    with beside(tmp_path / "data") as connection:
        connection.execute("UPDATE mails SET due_at = 0")  # the time of a retry, if there was an attempt
    with mail_server(port=port) as mailbox:
        await server.start()
        try:
            assert (await mailbox.first()).recipients == ["ada@example.com"]
        finally:
            await server.kill()


async def test_mail_whose_attempt_was_killed_is_sent_again_under_the_same_id(tmp_path: Path) -> None:
    seen, received = bytearray(), trio.Event()

    async def hang(stream: trio.SocketStream) -> None:
        for reply in (b"220 x\r\n", b"250 x\r\n", b"250 x\r\n", b"250 x\r\n", b"354 x\r\n"):
            await stream.send_all(reply)
            seen.extend(await stream.receive_some())
        while not seen.endswith(b"\r\n.\r\n"):
            seen.extend(await stream.receive_some())
        received.set()
        await trio.sleep_forever()

    async with raw_server(hang) as port:
        server = server_with_mail(tmp_path, port)
        await server.start()
        await invite(server)
        await received.wait()
        await server.kill()
    with beside(tmp_path / "data") as connection:
        assert connection.execute("SELECT attempts, status FROM mails").fetchone() == (1, "waiting")
        connection.execute("UPDATE mails SET due_at = 0")  # the claim of the killed process has lapsed
    with mail_server(port=port) as mailbox:
        await server.start()
        try:
            mail = await mailbox.first()
        finally:
            await server.kill()
    first = re.search(rb"Message-ID: (\S+)", bytes(seen))
    assert first is not None
    assert mail.message["Message-ID"] == first[1].decode()
