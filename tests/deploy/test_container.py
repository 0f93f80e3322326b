"""Containers of the image, built and run without an engine: their permissions, and how fast they stop."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

import httpx
import pytest
import trio

from tests.deploy.container import Container, Image, build, container
from tests.deploy.test_kubernetes import ONE
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.root import ROOT
from tests.support.sockets.raw_peer import RawPeer, upgrade
from tests.support.sockets.server_process import LOOK_S, free_port

KILLED_AFTER_S: Final = 10.0
"""The default grace period of `docker stop` and of an engine that shuts down."""
PIPE_BYTES: Final = 4096


@contextmanager
def started(
    image: Image,
    folder: Path,
    log: IO[str],
    *command: str,
    of_group: bool = False,
    at_mnt: Path | None = None,
    **environ: str,
) -> Iterator[tuple[Container, str, Path]]:
    """Yield a container, the URL at which it will answer, and its volume, owned by its user or its group."""
    volume = folder / "volume"
    volume.mkdir()
    user, group = map(int, image.stage.only("USER").split(":"))
    os.chown(volume, 0 if of_group else user, group)
    volume.chmod(0o2770 if of_group else 0o700)
    port = free_port()
    with container(image, folder, volume, log, command, at_mnt, DESKWIRE_PORT=str(port), **environ) as box:
        yield box, f"http://127.0.0.1:{port}", volume


@pytest.fixture
def log(tmp_path: Path) -> Iterator[IO[str]]:
    """The file that a container's output goes to."""
    with (tmp_path / "log").open("w+") as file:
        yield file


async def healthy(url: str) -> None:
    """Wait until the service is ready."""
    async with httpx.AsyncClient(trust_env=False) as http:
        with trio.fail_after(HANG_TIMEOUT_S):
            while True:
                with suppress(httpx.TransportError):
                    if (await http.get(f"{url}/readyz")).status_code == 200:
                        return
                await trio.sleep(LOOK_S)  # poll: there is no notification


def test_wheel_in_the_image_equals_the_release_byte_for_byte(image: Image, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (ours,) = image.dist.glob("*.whl")
    assert ours.read_bytes() == (tmp_path / ours.name).read_bytes()


def test_nothing_of_the_build_is_in_the_image(image: Image) -> None:
    found = {path.name for path in image.layer.iterdir()}
    assert not found & {"build", "src"}
    libraries = next(image.layer.glob("opt/deskwire/lib/python3*/site-packages"))
    assert not [each for each in ("hatchling", "mypy", "pytest", "ruff") if (libraries / each).exists()]


async def test_a_container_serves_with_a_read_only_root_and_stops_at_once(
    image: Image, tmp_path: Path, log: IO[str]
) -> None:
    with started(image, tmp_path, log) as (box, url, volume):
        await healthy(url)
        assert box.execute(image.stage.command("HEALTHCHECK")).returncode == 0
        made = box.execute(["deskwire", "org", "create", "Example"])
        assert (made.returncode, made.stdout[:4]) == (0, "org_")
        assert box.execute(["touch", "/opt/deskwire/written"]).returncode != 0
        assert box.execute(["python", "-c", "import obstore, psycopg"]).returncode == 0
        assert box.execute(["id", "-u"]).stdout == "10001\n"
        backup = box.execute(["deskwire-backup", "/var/lib/deskwire/kept"])
        assert backup.returncode == 0, backup.stderr
        assert len(list((volume / "kept").iterdir())) == 1
        assert box.stop(KILLED_AFTER_S) == 0
    assert {path.stat().st_uid for path in volume.rglob("*")} == {10001}
    log.seek(0)
    assert "Traceback" not in log.read()


async def test_a_container_restores_a_backup_to_an_empty_volume(
    image: Image, tmp_path: Path, log: IO[str]
) -> None:
    """The volume is a mount point, so it cannot be replaced by another folder, only filled."""
    found, first, second = tmp_path / "found", tmp_path / "first", tmp_path / "second"
    for folder in (found, first, second):
        folder.mkdir()
    with started(image, first, log) as (box, url, volume):
        await healthy(url)
        assert box.execute(["deskwire", "org", "create", "Example"]).returncode == 0
        made = box.execute(["deskwire", "backup", "/var/lib/deskwire/support.tar", "--with-secret"])
        assert made.returncode == 0, made.stderr
        (volume / "support.tar").rename(found / "support.tar")
    with started(image, second, log, "restore", "/mnt/support.tar", at_mnt=found) as (box, _, volume):
        assert await trio.to_thread.run_sync(box.process.wait, HANG_TIMEOUT_S) == 0
    assert (volume / "deskwire.sqlite3").exists()
    assert (volume / "secret").stat().st_uid == 10001


async def test_container_accepts_a_volume_with_group_permissions_from_kubernetes(
    image: Image, tmp_path: Path, log: IO[str]
) -> None:
    """`fsGroup` gives the volume's own folder to the group, with all rights; the data is in one of its own."""
    data = ONE.environment["DESKWIRE_DATA"]
    with started(image, tmp_path, log, of_group=True, DESKWIRE_DATA=data) as (box, url, volume):
        await healthy(url)
        assert box.stop(KILLED_AFTER_S) == 0
    assert (volume / "data").stat().st_mode & 0o077 == 0
    log.seek(0)
    assert "data.open_to_others" not in log.read()


async def test_container_stops_in_time_despite_its_clients(image: Image, tmp_path: Path) -> None:
    """The clients: an endless request body, a silent stream, a receiver that never answers, and a log without a reader."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    with (
        os.fdopen(writer, "w") as log,
        socket.create_server(("127.0.0.1", 0)) as receiver,
        started(image, tmp_path, log, "serve", DESKWIRE_ALLOW_PRIVATE_WEBHOOKS="true") as (box, url, volume),
    ):
        await healthy(url)
        demo = json.loads((volume / "demo.json").read_text())
        port = httpx.URL(url).port or 0
        key = {"Authorization": f"Bearer {demo['serverKey']}"}
        endpoint = {"url": f"http://127.0.0.1:{receiver.getsockname()[1]}", "events": ["message.created"]}
        body = {"contact": {"userId": "u1"}, "message": {"text": "Hello"}}
        async with httpx.AsyncClient(base_url=f"{url}/v3/s2s", headers=key, trust_env=False) as http:
            (await http.post("/webhooks", json=endpoint)).raise_for_status()
            for _ in range(50):  # some 20 KB of log
                (await http.post("/conversations", json=body)).raise_for_status()
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await RawPeer(stream).open(upgrade(key=demo["streamKey"]))
        sender = await trio.open_tcp_stream("127.0.0.1", port)
        head = "POST /v3/s2s/conversations HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n"
        await sender.send_all(f"{head}Authorization: {key['Authorization']}\r\n\r\n{{".encode())
        began = trio.current_time()
        assert await trio.to_thread.run_sync(box.stop, KILLED_AFTER_S) == 0
        assert trio.current_time() - began > 2.0, "nothing of all this has kept it from stopping"
        await stream.aclose()
        await sender.aclose()
    os.close(reader)


def test_an_image_without_extras_has_neither_driver_nor_client_of_buckets(
    tmp_path: Path, image: Image
) -> None:
    def libraries(of: Image) -> set[str]:
        return {
            path.name for path in next(of.layer.glob("opt/deskwire/lib/python3*/site-packages")).iterdir()
        }

    assert {"psycopg", "obstore"} <= libraries(image)
    plain = libraries(build(tmp_path, EXTRAS=""))
    assert "deskwire" in plain
    assert not {"psycopg", "obstore"} & plain
