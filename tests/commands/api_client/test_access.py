"""The service and key that a command takes, and its words when there is none."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from deskwire.commands.api_client.access import ServiceAccess, find_access

DEMO = ServiceAccess("http://127.0.0.1:8080", "sk_demo")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Make a data directory with a demo."""
    (tmp_path / "demo.json").write_text(json.dumps({"baseUrl": DEMO.url, "serverKey": DEMO.key}))
    return tmp_path


def refusal(url: str | None, key: str | None, data: Path) -> str:
    with pytest.raises(click.UsageError) as caught:
        find_access(url, key, data)
    return caught.value.message


def test_default_service_is_the_demo_of_the_data_directory(data: Path) -> None:
    assert find_access(None, None, data) == DEMO


def test_url_and_key_need_no_data_directory_and_accept_a_version_suffix(tmp_path: Path) -> None:
    for url in ("https://a.test", "https://a.test/", "https://a.test/v3", "https://a.test/v3/"):
        assert find_access(url, "sk_1", tmp_path / "none") == ServiceAccess("https://a.test", "sk_1")


def test_the_demos_key_goes_to_the_demos_address_only(data: Path) -> None:
    assert find_access(DEMO.url, None, data) == DEMO
    assert find_access(None, "sk_2", data) == ServiceAccess(DEMO.url, "sk_2")
    message = refusal("http://a.test", None, data)
    assert "--key" in message
    assert f"is for {DEMO.url}, not for http://a.test" in message


def test_missing_option_is_named_with_a_remedy(tmp_path: Path) -> None:
    for url, key in ((None, None), ("http://a.test", None), (None, "sk_secret")):
        message = refusal(url, key, tmp_path)
        assert all(name in message for name in ("--url", "--key", "DESKWIRE_KEY", "--data", "demo.json"))
        assert "sk_secret" not in message


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"baseUrl": 1, "serverKey": 2}', '"x"'])
def test_invalid_demo_file_is_refused_by_name(tmp_path: Path, content: str) -> None:
    (tmp_path / "demo.json").write_text(content)
    assert str(tmp_path / "demo.json") in refusal(None, None, tmp_path)


@pytest.mark.parametrize(
    "url", ["a.test", "ftp://a.test", "http://", "http://user:secret@a.test", "http://a/?x"]
)
def test_invalid_url_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    message = refusal(url, "sk_1", tmp_path)
    assert message.startswith("--url must be an http or https URL")
    assert "secret" not in message


@pytest.mark.parametrize("key", ["sk_\n1", "sk 1", "sk_ü", "sk_\x1b"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(tmp_path: Path, key: str) -> None:
    message = refusal("http://a.test", key, tmp_path)
    assert "DESKWIRE_KEY" in message
    assert key not in message


def test_a_key_is_in_no_representation() -> None:
    assert "sk_" not in repr(DEMO)
