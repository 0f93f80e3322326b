"""The server's certificate, reloaded when its files change (ADR 25).

It can be reloaded on request as well. Open connections keep their certificate; each new connection gets the
newest valid one. A renewal that is not usable is logged, and changes nothing.
"""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog
import trio
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from msgspec import Struct

from deskwire.engine.core.clock import Clock

log: Final = structlog.get_logger(__name__)

# Time between two checks of the files. It may be long, because certificates are renewed weeks before their
# expiry.
POLL_INTERVAL_S: Final = 60.0
# Days before the expiry from which the log warns daily.
WARNING_DAYS: Final = 14
_DAY_MS: Final = 86_400_000
# No `h2`: Hypercorn would offer websockets over HTTP/2, which the stream does not support.
_ALPN: Final = ("http/1.1",)
# For TLS 1.2, the strongest first: AEAD suites with forward secrecy, and no CBC. TLS 1.3 has no other ones.
_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20:@STRENGTH"
_SPKI: Final = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


class BadCertificate(Exception):
    """The certificate or its key is not usable.

    Returns the text says why.
    """


class LoadedCertificate(Struct, frozen=True):
    """A certificate with the TLS context that uses it.

    Args:
        names: DNS names and addresses of the certificate.
        begins, ends: its validity, in milliseconds since the epoch.
    """

    context: ssl.SSLContext
    names: tuple[str, ...]
    begins: int
    ends: int


class Certificate:
    """The certificate in use.

    Raises BadCertificate, at the start only, if the files are not usable.

    Args:
        chain: PEM file, the server's certificate first.
        key: PEM file with its private key, unencrypted.
    """

    def __init__(self, chain: Path, key: Path, clock: Clock) -> None:
        self._chain = chain
        self._key = key
        self._clock = clock
        self._wanted = trio.Event()
        self._stamp = self._current_stamp()
        self._secured = load_certificate(chain, key)
        self._warned: int | None = None
        self._note(self._secured)

    @property
    def ends(self) -> int:
        """The expiry of the certificate in use, in milliseconds since the epoch."""
        return self._secured.ends

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of the next connection."""
        return self._secured.context

    def covers(self, host: str) -> bool:
        """Return whether the certificate is for this host."""
        _, _, domain = host.lower().partition(".")
        return any(name in (host.lower(), f"*.{domain}") for name in self._secured.names)

    def renew(self) -> None:
        """Reload the files now, changed or not."""
        self._wanted.set()

    async def run(self) -> None:
        """Reload the certificate when its files change, until cancelled."""
        while True:
            with trio.move_on_after(POLL_INTERVAL_S):
                await self._wanted.wait()
            asked, self._wanted = self._wanted.is_set(), trio.Event()
            stamp = self._current_stamp()
            if asked or stamp != self._stamp:
                self._stamp = stamp
                self._replace()
            self._warn_of_the_end()

    def _replace(self) -> None:
        now = self._clock()
        try:
            new = load_certificate(self._chain, self._key)
            if new.ends <= now < self._secured.ends:
                raise BadCertificate(f"The certificate in {self._chain} has expired.")
        except BadCertificate as error:
            log.error("tls.certificate_not_renewed", reason=str(error), until=_day(self._secured.ends))
        else:
            self._secured = new
            self._note(new)

    def _note(self, new: LoadedCertificate) -> None:
        log.info("tls.certificate", names=list(new.names), until=_day(new.ends))
        if new.begins > self._clock():
            log.error("tls.certificate_not_valid_yet", begins=_day(new.begins))
        self._warned = None
        self._warn_of_the_end()

    def _warn_of_the_end(self) -> None:
        """Log the remaining days once a day, if they are few."""
        days = (self._secured.ends - self._clock()) // _DAY_MS
        if days < WARNING_DAYS and days != self._warned:
            self._warned = days
            if self._secured.ends <= self._clock():
                log.error("tls.certificate_expired", until=_day(self._secured.ends))
            else:
                log.warning("tls.certificate_expires", days=days, until=_day(self._secured.ends))

    def _current_stamp(self) -> tuple[object, ...]:
        """Return a value that changes with the files."""
        return tuple(map(_stamp, (self._chain, self._key)))


def load_certificate(chain: Path, key: Path) -> LoadedCertificate:
    """Return the certificate in these files. Raises BadCertificate."""
    try:
        certificate, *_ = x509.load_pem_x509_certificates(_content(chain))
    except ValueError as error:
        raise BadCertificate(f"There is no certificate in PEM form in {chain}.") from error
    if certificate.public_key().public_bytes(*_SPKI) != _public_part(key):
        raise BadCertificate(f"The key in {key} is not that of the first certificate in {chain}.")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(_ALPN)
    try:
        context.load_cert_chain(chain, key)
    except (
        OSError,
        ValueError,
    ) as error:  # unsupported by this OpenSSL, or changed between the reads
        raise BadCertificate(f"{chain} and {key} can't be used: {error}") from error
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return LoadedCertificate(context, _names(certificate), _ms(begins), _ms(ends))


def _public_part(path: Path) -> bytes:
    try:
        key = load_pem_private_key(_content(path), password=None)
    except TypeError as error:
        raise BadCertificate(f"The key in {path} needs a passphrase; store it without one.") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadCertificate(f"There is no private key in PEM form in {path}.") from error
    return key.public_key().public_bytes(*_SPKI)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCertificate(f"{path} can't be read: {error.strerror or error}.") from error


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        alternative_names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return ()
    names = [name.lower() for name in alternative_names.get_values_for_type(x509.DNSName)]
    return (*names, *map(str, alternative_names.get_values_for_type(x509.IPAddress)))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size, seen.st_ino


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).date().isoformat()
