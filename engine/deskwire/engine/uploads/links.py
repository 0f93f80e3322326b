"""Signed, expiring URLs of uploads (contract 6.4.7).

The URL is sufficient to fetch the file; no credential is needed.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from deskwire.engine.core.errors import Forbidden
from deskwire.engine.core.secret import Keyring
from deskwire.engine.uploads.upload import Attachment

# Returns attachments as a message shows them.
AttachmentsView = Callable[[Sequence[Attachment]], list[dict[str, Any]]]

# Lifetime of a URL: about 30 days (contract 8).
LIFETIME_S: Final = 30 * 24 * 3_600

_SECOND_MS: Final = 1_000


class Links:
    """Signs and verifies the URLs of uploads.

    Args:
        keys: the signing keys, the current one first.
        base: the start of every URL, such as `https://support.example.com/v3/uploads`.
        lifetime_s: lifetime of a URL in seconds.
    """

    def __init__(self, keys: Keyring, base: str, *, lifetime_s: float = LIFETIME_S) -> None:
        self._keys = keys
        self._base = base
        self._lifetime_ms = int(lifetime_s * _SECOND_MS)

    def url(self, upload_id: str, name: str, now: int) -> tuple[str, int]:
        """Return a URL signed now, and its expiry; both times are in milliseconds."""
        expires = (now + self._lifetime_ms) // _SECOND_MS
        return self._signed(self._keys()[0], upload_id, name, str(expires)), expires * _SECOND_MS

    def shown(self, attachments: Sequence[Attachment], now: int) -> list[dict[str, Any]]:
        """Return attachments as a message shows them, with URLs signed now (decisions 4)."""
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
        """Verify the parts of a signed URL.

        Raises Forbidden: `link_invalid` if the URL is altered or incomplete, `link_expired`.
        """
        signatures = [_signature(key, upload_id, name, expires or "") for key in self._keys()]
        if not _is_one_of(signatures, signature or ""):
            raise Forbidden("This URL is not one that this service has signed.", code="link_invalid")
        if int(expires or "") * _SECOND_MS <= now:
            raise Forbidden(
                "This URL has expired; fetch the object it is from for a new one.", code="link_expired"
            )

    def upload_id(self, url: str, now: int) -> str | None:
        """Return the id of the upload that a URL leads to.

        None unless the URL is exactly one that this service signed and has not expired.
        """
        if not url.startswith(f"{self._base}/"):
            return None
        try:
            parts = urlsplit(url[len(self._base) + 1 :])
            upload_id, name = map(unquote, parts.path.split("/"))
            (expires,) = parse_qs(parts.query)["expires"]
        except (KeyError, ValueError):
            return None
        signed = [self._signed(key, upload_id, name, expires) for key in self._keys()]
        return upload_id if _is_one_of(signed, url) and int(expires) * _SECOND_MS > now else None

    def _signed(self, key: bytes, upload_id: str, name: str, expires: str) -> str:
        signature = _signature(key, upload_id, name, expires)
        path = f"{_quoted(upload_id)}/{_quoted(name)}"
        return f"{self._base}/{path}?expires={_quoted(expires)}&signature={signature}"


def _signature(key: bytes, upload_id: str, name: str, expires: str) -> str:
    signed = f"{upload_id}\n{name}\n{expires}".encode(errors="replace")
    return urlsafe_b64encode(hmac.digest(key, signed, sha256)).decode().rstrip("=")


def _is_one_of(genuine: Sequence[str], text: str) -> bool:
    """Return whether a text is one of these, in constant time for each."""
    return any(hmac.compare_digest(one.encode(), text.encode(errors="replace")) for one in genuine)


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")


def no_links() -> Links:
    """Return links for a program that serves no files; they can't be opened."""
    key = secrets.token_bytes(32)
    return Links(lambda: (key,), "")
