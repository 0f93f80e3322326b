"""The server's certificate: refusals, log lines and renewal (ADR 25)."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from structlog.testing import capture_logs
from trio.testing import MockClock

from deskwire.http.server.certificate import (
    POLL_INTERVAL_S,
    WARNING_DAYS,
    BadCertificate,
    Certificate,
    load_certificate,
)
from tests.support.sockets.certificates import DAY, NOW, Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def said() -> Iterator[list[Any]]:
    """The captured log entries."""
    with capture_logs() as entries:
        yield entries


def opened(files: Files) -> Certificate:
    return Certificate(files.chain, files.key, files.clock)


def events(said: list[Any]) -> list[str]:
    return [entry["event"] for entry in said]


def refusal(files: Files) -> str:
    with pytest.raises(BadCertificate) as caught:
        load_certificate(files.chain, files.key)
    return str(caught.value)


def test_files_that_cannot_be_used_are_refused_with_the_reason(files: Files) -> None:
    chain, key = files.chain.read_bytes(), files.key.read_bytes()
    files.chain.unlink()
    assert refusal(files) == f"{files.chain} can't be read: No such file or directory."
    files.chain.write_bytes(key)
    assert refusal(files) == f"There is no certificate in PEM form in {files.chain}."
    files.chain.write_bytes(chain)
    files.key.write_bytes(chain)
    assert refusal(files) == f"There is no private key in PEM form in {files.key}."
    files.key.write_bytes(b"\x00" * 100)
    assert refusal(files) == f"There is no private key in PEM form in {files.key}."
    files.key.unlink()
    files.key.mkdir()
    assert refusal(files) == f"{files.key} can't be read: Is a directory."


def test_a_key_of_another_certificate_is_refused(files: Files) -> None:
    key = files.key.read_bytes()
    files.write()
    files.key.write_bytes(key)
    assert "is not that of the first certificate" in refusal(files)


def test_key_with_a_passphrase_is_refused_without_a_prompt(files: Files) -> None:
    key = load_pem_private_key(files.key.read_bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    files.key.write_bytes(locked)
    assert "needs a passphrase" in refusal(files)


def test_old_versions_of_tls_are_not_spoken(files: Files) -> None:
    assert load_certificate(files.chain, files.key).context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_every_cipher_suite_authenticates_what_it_encrypts(files: Files) -> None:
    context = load_certificate(files.chain, files.key).context
    suites = [each["name"] for each in context.get_ciphers()]
    assert {"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305", "TLS_AES_256_GCM_SHA384"} <= {
        *suites
    }
    assert all("GCM" in name or "CHACHA20" in name for name in suites), suites
    assert all(name.startswith(("ECDHE-", "TLS_")) for name in suites), suites
    strengths = [each["strength_bits"] for each in context.get_ciphers() if each["name"].startswith("ECDHE-")]
    assert strengths == sorted(strengths, reverse=True)


def test_log_names_the_hosts_of_the_certificate(files: Files) -> None:
    files.write("support.test", "*.shop.test", "127.0.0.1")
    certificate = opened(files)
    assert all(map(certificate.covers, ("support.test", "SUPPORT.test", "a.shop.test", "127.0.0.1")))
    assert not any(map(certificate.covers, ("test", "shop.test", "a.b.shop.test", "127.0.0.2", "localhost")))


def test_expired_certificate_is_used_and_logged(files: Files, said: list[Any]) -> None:
    files.write(days=-1)
    opened(files)
    files.write(begins=NOW + DAY)
    opened(files)
    assert events(said) == [
        "tls.certificate",
        "tls.certificate_expired",
        "tls.certificate",
        "tls.certificate_not_valid_yet",
    ]


async def test_the_days_that_are_left_are_counted_when_they_are_few(
    files: Files, said: list[Any], autojump_clock: MockClock
) -> None:
    files.write(days=WARNING_DAYS + 0.5)
    certificate = opened(files)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(certificate.run)
        for _ in range(4):
            await trio.sleep(4 * POLL_INTERVAL_S)  # virtual time: the mock clock jumps
            files.now += 5 * DAY
        nursery.cancel_scope.cancel()
    assert [entry.get("days") for entry in said if entry["event"] == "tls.certificate_expires"] == [9, 4]
    assert events(said)[-1] == "tls.certificate_expired"


async def test_changed_file_is_reloaded_automatically(files: Files, autojump_clock: MockClock) -> None:
    certificate = opened(files)
    before = certificate.context()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(certificate.run)
        await trio.sleep(3 * POLL_INTERVAL_S)  # virtual time: the mock clock jumps
        assert certificate.context() is before
        files.write("new.test")
        await trio.sleep(3 * POLL_INTERVAL_S)  # virtual time: the mock clock jumps
        assert certificate.covers("new.test")
        nursery.cancel_scope.cancel()


async def test_unusable_renewal_changes_nothing_and_the_next_one_is_used(
    files: Files, said: list[Any], autojump_clock: MockClock
) -> None:
    """As between the two files of a renewal: the certificate is there, the key is not."""
    certificate = opened(files)
    before, old_key = certificate.context(), files.key.read_bytes()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(certificate.run)
        files.write("new.test")
        new_key = files.key.read_bytes()
        for bad in (old_key, b"", b"nonsense"):
            files.key.write_bytes(bad)
            certificate.renew()
            await trio.sleep(1)  # virtual time: the mock clock jumps
            assert certificate.context() is before
        assert events(said).count("tls.certificate_not_renewed") == 3
        files.key.write_bytes(new_key)
        certificate.renew()
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert certificate.covers("new.test")
        nursery.cancel_scope.cancel()


async def test_an_expired_renewal_does_not_replace_a_certificate_that_is_valid(
    files: Files, said: list[Any], autojump_clock: MockClock
) -> None:
    certificate = opened(files)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(certificate.run)
        files.write("new.test", days=-1)
        certificate.renew()
        await trio.sleep(1)  # virtual time: the mock clock jumps
        assert not certificate.covers("new.test")
        nursery.cancel_scope.cancel()
    assert any("has expired" in entry.get("reason", "") for entry in said)


def test_key_is_in_no_log_line_or_error(files: Files) -> None:
    lines = files.key.read_text().splitlines()[1:-1]
    files.chain.write_bytes(files.key.read_bytes())
    assert not any(line in refusal(files) for line in lines)
