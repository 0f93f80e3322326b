"""Signed, expiring URLs of uploads: whoever has one may fetch that file without a credential (contract 6.4.7)."""

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

AttachmentsView = Callable[[Sequence[Attachment]], list[dict[str, Any]]]
"""Attachments as a message shows them."""

LIFETIME_S: Final = 30 * 24 * 3_600
"""The lifetime of a URL: about 30 days (contract 8)."""

_SECOND_MS: Final = 1_000


class Links:
    """A signer and verifier of the URLs of uploads.

    Args:
        keys: the signing keys, the current one first.
        base: the beginning of every URL, such as `https://support.example.com/v3/uploads`.
        lifetime_s: the seconds for which a URL is valid.
    """

    def __init__(self, keys: Keyring, base: str, *, lifetime_s: float = LIFETIME_S) -> None:
        self._keys = keys
        self._base = base
        self._lifetime_ms = int(lifetime_s * _SECOND_MS)

    def url(self, upload_id: str, name: str, now: int) -> tuple[str, int]:
        """Return a URL that is signed now, and the time at which it expires; both times in milliseconds."""
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
        """Check the parts of a URL that `url` has made.

        Raises Forbidden: `link_invalid` if it is altered or incomplete, `link_expired`.
        """
        signatures = [_signature(key, upload_id, name, expires or "") for key in self._keys()]
        if not _is_one_of(signatures, signature or ""):
            raise Forbidden("This URL is not one that this service has signed.", code="link_invalid")
        if int(expires or "") * _SECOND_MS <= now:
            raise Forbidden(
                "This URL has expired; fetch the object it is from for a new one.", code="link_expired"
            )

    def upload_id(self, url: str, now: int) -> str | None:
        """Return the id of the upload that a URL leads to; None unless it is, letter by letter, a valid one of this service."""
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
    """Tell whether a text is one of these, in a time that reveals nothing but their number."""
    return any(hmac.compare_digest(one.encode(), text.encode(errors="replace")) for one in genuine)


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")


def no_links() -> Links:
    """Return links that lead nowhere, for a program that serves no files."""
    key = secrets.token_bytes(32)
    return Links(lambda: (key,), "")
