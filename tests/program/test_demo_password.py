"""When the demo's password is hashed: while a first start loads the program, else when it is needed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from deskwire.config.config import Config
from deskwire.engine.accounts.credentials import Passwords
from deskwire.engine.accounts.people import User
from deskwire.program import demo_password
from deskwire.program.demo_password import DemoPassword, start_hashing
from deskwire.storage.sqlite.directory import FILE_NAME

_KIB = 1024


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a password has been made."""
    event, new_password = threading.Event(), demo_password.new_password

    def noted(memory_kib: int) -> DemoPassword:
        password = new_password(memory_kib)
        event.set()
        return password

    monkeypatch.setattr(demo_password, "new_password", noted)
    return event


def test_password_on_an_empty_directory_is_hashed_before_the_first_use(
    tmp_path: Path, made: threading.Event
) -> None:
    password = start_hashing(Config(data_dir=tmp_path, argon2_memory_kib=_KIB))
    assert made.wait(10)

    assert password() == password()  # one, however often it is asked for
    user = User(1, "usr_1", "a@example.com", "A", password().hash)
    assert Passwords(_KIB).check(user, password().text, "") is user


@pytest.mark.parametrize("without", ["a first start", "a demo", "a file"])
def test_password_without_a_new_demo_is_hashed_at_its_first_use(
    without: str, tmp_path: Path, made: threading.Event
) -> None:
    config = Config(data_dir=tmp_path, argon2_memory_kib=_KIB)
    if without == "a first start":
        (tmp_path / FILE_NAME).touch()
    elif without == "a demo":
        config = Config(data_dir=tmp_path, argon2_memory_kib=_KIB, demo=False)
    else:
        config = Config(data_dir=tmp_path, argon2_memory_kib=_KIB, database_url="postgresql://x/y")

    password = start_hashing(config)

    assert not made.is_set()
    assert password().hash.startswith("$argon2id$")
    assert made.is_set()


def test_unreadable_directory_does_not_start_the_hashing(tmp_path: Path, made: threading.Event) -> None:
    start_hashing(Config(data_dir=tmp_path / ("x" * 300), argon2_memory_kib=_KIB))
    assert not made.is_set()


def test_error_in_the_thread_is_raised_at_the_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: int) -> DemoPassword:
        raise MemoryError

    monkeypatch.setattr(demo_password, "new_password", refused)
    with pytest.raises(MemoryError):
        start_hashing(Config(data_dir=tmp_path))()
