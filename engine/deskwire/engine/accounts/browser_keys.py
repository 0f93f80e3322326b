"""The keys under which a browser keeps what its user has written and not sent yet."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

from deskwire.engine.core.secret import Secrets, derived_key

_LABEL: Final = "browser storage"


def browser_keys(secrets: Secrets, user_id: str) -> Sequence[str]:
    """Return a user's keys as base64url of 32 bytes: the one to seal with, then those of former secrets, which open.

    They are the same for as long as the installation's secret is, so a browser opens what it has kept after the next
    sign-in. They are given only to a session that is valid.
    """
    return [_key(derived_key(secret, _LABEL), user_id) for secret in secrets.known]


def _key(purpose: bytes, user_id: str) -> str:
    digest = hmac.new(purpose, user_id.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
