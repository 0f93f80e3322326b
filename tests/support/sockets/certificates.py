"""Certificates on disk, for services that speak TLS."""

from __future__ import annotations

import datetime
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import trustme

AUTHORITY: Final = trustme.CA()
NOW: Final = datetime.datetime.now(datetime.UTC)
DAY: Final = datetime.timedelta(days=1)


@dataclass
class Files:
    """A certificate and its key on disk, of an authority made for the tests."""

    folder: Path
    now: datetime.datetime = NOW

    def __post_init__(self) -> None:
        self.ca.write_bytes(AUTHORITY.cert_pem.bytes())
        self.write()

    @property
    def ca(self) -> Path:
        """The authority's own certificate."""
        return self.folder / "ca.pem"

    @property
    def chain(self) -> Path:
        return self.folder / "chain.pem"

    @property
    def key(self) -> Path:
        return self.folder / "key.pem"

    def write(self, *names: str, days: float = 90, begins: datetime.datetime | None = None) -> None:
        """Write a fresh certificate, valid for this number of days from now."""
        leaf = AUTHORITY.issue_cert(
            *(names or ("localhost", "127.0.0.1")),
            not_before=begins or NOW - 30 * DAY,
            not_after=self.now + days * DAY,
            key_type=trustme.KeyType.ECDSA,
        )
        self.chain.write_bytes(b"".join(pem.bytes() for pem in leaf.cert_chain_pems))
        self.key.write_bytes(leaf.private_key_pem.bytes())

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of a service that uses the certificate."""
        return {"tls_cert": self.chain, "tls_key": self.key}

    @property
    def trust(self) -> ssl.SSLContext:
        """A context in which clients trust the certificate."""
        return ssl.create_default_context(cafile=self.ca)

    def clock(self) -> int:
        """Return the time, in milliseconds since the epoch."""
        return int(self.now.timestamp() * 1000)
