"""Signed, expiring URLs of uploads: who has one may fetch that file, without any credential (contract 6.4.7)."""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from deskwire.engine.conversation import Attachment
from deskwire.engine.errors import Forbidden

Shown = Callable[[Sequence[Attachment]], list[dict[str, Any]]]
"""Attachments as a message shows them."""

LIFETIME_S: Final = 30 * 24 * 3_600
"""Contract 8: about 30 days."""

_SECOND_MS: Final = 1_000


class Links:
    """Makes the URLs and knows them again.

    Args:
        key: what they are signed with.
        base: what they start with, `https://support.example.com/v3/uploads`.
        lifetime_s: how long one is valid.
    """

    def __init__(self, key: bytes, base: str, *, lifetime_s: float = LIFETIME_S) -> None:
        self._key = key
        self._base = base
        self._lifetime_ms = int(lifetime_s * _SECOND_MS)

    def url(self, upload_id: str, name: str, now: int) -> tuple[str, int]:
        """A URL that is signed now, and when it expires; both times in milliseconds."""
        expires = (now + self._lifetime_ms) // _SECOND_MS
        return self._signed(upload_id, name, str(expires)), expires * _SECOND_MS

    def shown(self, attachments: Sequence[Attachment], now: int) -> list[dict[str, Any]]:
        """Attachments as a message shows them, with URLs signed now (decisions 4)."""
        return [
            {
                "id": each.id,
                "name": each.name,
                "type": each.type,
                "size": each.size,
                "url": self.url(each.id, each.name, now)[0],
            }
            for each in attachments
        ]

    def check(self, upload_id: str, name: str, expires: str | None, signature: str | None, now: int) -> None:
        """Let pass what `url` has made and is still valid.

        Raises Forbidden: `link_invalid` for what is altered or incomplete, `link_expired`.
        """
        made = self._signature(upload_id, name, expires or "")
        if not hmac.compare_digest(made.encode(), (signature or "").encode(errors="replace")):
            raise Forbidden("This URL is not one that this service has signed.", code="link_invalid")
        if int(expires or "") * _SECOND_MS <= now:
            raise Forbidden(
                "This URL has expired; fetch the object it is from for a new one.", code="link_expired"
            )

    def upload_id(self, url: str, now: int) -> str | None:
        """The upload that a URL leads to; None if it is not, letter by letter, one of ours that is still valid."""
        if not url.startswith(f"{self._base}/"):
            return None
        try:
            parts = urlsplit(url[len(self._base) + 1 :])
            upload_id, name = map(unquote, parts.path.split("/"))
            (expires,) = parse_qs(parts.query)["expires"]
        except (KeyError, ValueError):
            return None
        made = self._signed(upload_id, name, expires)
        genuine = hmac.compare_digest(made.encode(), url.encode(errors="replace"))
        return upload_id if genuine and int(expires) * _SECOND_MS > now else None

    def _signed(self, upload_id: str, name: str, expires: str) -> str:
        signature = self._signature(upload_id, name, expires)
        path = f"{_quoted(upload_id)}/{_quoted(name)}"
        return f"{self._base}/{path}?expires={_quoted(expires)}&signature={signature}"

    def _signature(self, upload_id: str, name: str, expires: str) -> str:
        signed = f"{upload_id}\n{name}\n{expires}".encode(errors="replace")
        return urlsafe_b64encode(hmac.digest(self._key, signed, sha256)).decode().rstrip("=")


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")


def nowhere() -> Links:
    """Links that lead nowhere, for a program that serves no files."""
    return Links(secrets.token_bytes(32), "")
