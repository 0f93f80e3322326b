"""Data directories that have lost a part: a start is refused with the way out, and makes nothing new in its place."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
import trio
from click.testing import CliRunner

from deskwire.cli import cli
from deskwire.config.config import Config
from deskwire.program.errors import StartError
from deskwire.program.serve import serve
from deskwire.storage.sqlite.database import migrate
from deskwire.storage.sqlite.directory import RESCUED, DataDirectoryError
from tests.api.uploads.test_uploads import send
from tests.support.api.service import running
from tests.support.deadlines import HANG_TIMEOUT_S

pytestmark = pytest.mark.sqlite  # a database of several nodes names its installation itself
OTHER = "another secret of quite enough characters"
URL = "http://127.0.0.1:9999/hook"
DATABASE = "deskwire.sqlite3"


async def used(data: Path, **settings: Any) -> None:
    """Make an installation with an endpoint, and stop it in good order."""
    async with running(data, **settings) as service:
        made = await service.http.post("/s2s/webhooks", json={"url": URL, "events": []})
        assert made.status_code == 200, made.text


async def refusal(data: Path, kind: type[Exception] = StartError, **settings: Any) -> str:
    """The words in which a start is refused."""
    config = Config(data_dir=data, port=0, demo=False, **settings)
    with pytest.RaisesGroup(kind, allow_unwrapped=True, flatten_subgroups=True) as refused:
        with trio.fail_after(HANG_TIMEOUT_S):
            await serve(config)
    (error,) = refused.value.exceptions if isinstance(refused.value, BaseExceptionGroup) else (refused.value,)
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    return str(error)


async def started(data: Path, *, new_secret: bool = False, **settings: Any) -> None:
    """Start a service on a directory, and stop it in good order."""
    config = Config(data_dir=data, port=0, demo=False, **settings)
    async with trio.open_nursery() as nursery:
        serving = await nursery.start(partial(serve, config, new_secret=new_secret))
        serving.stop()


async def test_a_missing_secret_refuses_the_start_and_no_other_is_made(tmp_path: Path) -> None:
    await used(tmp_path)
    secret = tmp_path / "secret"
    kept = secret.read_text()
    secret.unlink()
    words = await refusal(tmp_path)
    assert str(secret) in words
    assert "--new-secret" in words
    assert not secret.exists()
    secret.write_text(kept)
    await started(tmp_path)


async def test_another_secret_refuses_the_start(tmp_path: Path) -> None:
    await used(tmp_path)
    words = await refusal(tmp_path, secret=OTHER)
    assert "DESKWIRE_SECRET" in words
    assert "DESKWIRE_SECRET_PREVIOUS" in words
    (tmp_path / "secret").write_text(OTHER + "\n")
    assert str(tmp_path / "secret") in await refusal(tmp_path)


async def test_other_secret_is_detected_without_any_endpoint(tmp_path: Path) -> None:
    async with running(tmp_path):
        pass
    assert "is not the one of this database" in await refusal(tmp_path, secret=OTHER)


async def test_older_database_is_recognized_by_its_sealed_secrets(tmp_path: Path) -> None:
    await used(tmp_path)
    forget_id(tmp_path)
    assert "is not the one of this database" in await refusal(tmp_path, secret=OTHER)
    await started(tmp_path)
    assert "that has the id" in await refusal(tmp_path, secret=OTHER)


def remove(data: Path, pattern: str) -> None:
    """Remove the files of a directory that fit a pattern."""
    for each in data.glob(pattern):
        each.unlink()


def forget_id(data: Path) -> None:
    """Leave the database as an upgrade does: it does not say which secret it belongs to."""
    with closing(sqlite3.connect(data / DATABASE)) as connection, connection:
        connection.execute("UPDATE installation SET secret_id = NULL")


@pytest.mark.parametrize("settings", [{}, {"secret": OTHER}], ids=["missing", "another"])
async def test_a_start_with_a_new_secret_goes_on_and_the_next_one_does_too(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    await used(tmp_path)
    (tmp_path / "secret").unlink()
    await started(tmp_path, new_secret=True, **settings)
    await started(tmp_path, **settings)


async def test_a_secret_that_replaced_another_by_the_settings_is_taken(tmp_path: Path) -> None:
    await used(tmp_path, secret=OTHER)
    new = "a new secret that has enough characters"
    await started(tmp_path, secret=new, secret_previous=OTHER)
    await started(tmp_path, secret=new)
    assert "is not the one of this database" in await refusal(tmp_path, secret=OTHER)


async def test_empty_or_half_initialized_directory_is_not_refused(
    tmp_path: Path,
) -> None:
    async with running(tmp_path / "new"):
        pass
    remove(tmp_path / "new", "secret")
    forget_id(tmp_path / "new")  # the kill came between the database and its secret
    await started(tmp_path / "new")


def new(path: Path) -> None:
    """Make a database as the first start of an installation does."""
    migrate(path)


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE notes (text)")


def nothing(path: Path) -> None:
    """Leave the database missing."""


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


@pytest.mark.parametrize(
    ("made", "state"),
    [
        (new, "has no organisation"),
        (of_another_program, "is another program's"),
        (Path.touch, "is empty"),
        (nothing, "is missing"),
    ],
)
@pytest.mark.parametrize("left", ["secret", "uploads", "backups"])
async def test_database_that_is_not_the_installations_refuses_start_and_command_and_is_a_problem_for_check(
    tmp_path: Path, made: Callable[[Path], None], state: str, left: str
) -> None:
    async with running(tmp_path) as service:
        await send(service)
    (tmp_path / "backups").mkdir(exist_ok=True)
    (tmp_path / "backups" / "20260101T000000Z-before-m0001.sqlite3").write_bytes(b"copy")
    remove(tmp_path, f"{DATABASE}*")
    made(tmp_path / DATABASE)
    os.utime(tmp_path / "secret", (1, 1))  # the databases of tests are copies of one that is older than they
    for name in {"secret", "uploads", "backups"} - {left}:
        path = tmp_path / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = content(tmp_path / DATABASE)
    words = await refusal(tmp_path, DataDirectoryError)
    assert f"{tmp_path / DATABASE} {state}" in words
    assert "deskwire restore" in words
    for command in ("org create Harbour", "org list", f"backup {tmp_path}.backup"):
        assert state in await refused(command, tmp_path)
    words = await refused("check", tmp_path)
    assert "database_identity" in words
    assert state in words
    assert content(tmp_path / DATABASE) == before


@pytest.mark.parametrize("command", ["org create Harbour", "org list", "backup copy.backup"])
@pytest.mark.parametrize("left", ["beside another database", "alone"])
async def test_a_rescued_database_refuses_commands_until_the_operator_has_chosen(
    tmp_path: Path, command: str, left: str
) -> None:
    migrate(tmp_path / DATABASE)
    shutil.copyfile(tmp_path / DATABASE, tmp_path / RESCUED)
    if left == "alone":
        (tmp_path / DATABASE).unlink()
    assert f"has saved its content in {tmp_path / RESCUED}" in await refused(command, tmp_path)


async def refused(command: str, data: Path) -> str:
    """Return the words of a command on a data directory that fails."""
    return await trio.to_thread.run_sync(partial(commanded, *command.split(), "--data", str(data)))


def commanded(*arguments: str) -> str:
    """Return the words of a command that fails."""
    before, root = structlog.get_config(), logging.getLogger()
    handlers, level = root.handlers, root.level
    try:
        result = CliRunner().invoke(cli, arguments, env={"DESKWIRE_LOG_FORMAT": "json"})
    finally:  # a command sets up the log of its process, which is that of all tests here
        structlog.configure(**before)
        root.handlers = handlers
        root.setLevel(level)
    assert result.exit_code == 1, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.output


async def test_check_names_a_secret_that_is_not_the_databases(tmp_path: Path) -> None:
    async with running(tmp_path):
        pass
    (tmp_path / "secret").write_text(OTHER + "\n")
    words = await trio.to_thread.run_sync(commanded, "check", "--data", str(tmp_path))
    assert "secret_wrong" in words


async def test_check_names_a_rescued_database(tmp_path: Path) -> None:
    async with running(tmp_path):
        pass
    (tmp_path / "rescued.sqlite3").write_bytes(b"saved")
    words = await refused("check", tmp_path)
    assert "database_identity" in words
    assert "rescued.sqlite3" in words
    assert "rescued.sqlite3" in await refusal(tmp_path, DataDirectoryError)


async def test_readiness_reports_signing_secrets_that_cannot_be_opened_and_stays_ready(
    tmp_path: Path,
) -> None:
    await used(tmp_path)
    async with running(tmp_path) as service:
        answer = await service.http.get(f"{service.url}/readyz")
        assert answer.json() == {"status": "ready"}
    (tmp_path / "secret").unlink()
    config = Config(data_dir=tmp_path, port=0, demo=False, allow_private_webhooks=True)
    async with trio.open_nursery() as nursery, httpx.AsyncClient(trust_env=False) as http:
        serving = await nursery.start(partial(serve, config, new_secret=True))
        with trio.fail_after(HANG_TIMEOUT_S):
            while True:
                answer = await http.get(f"{serving.url}/readyz")
                assert answer.status_code == 200
                if "notices" in answer.json():
                    break
                await trio.sleep(0.02)  # poll: there is no notification
        assert "signing secrets of 1 webhook endpoints" in answer.json()["notices"][0]
        serving.stop()
