"""Decides which failures are repeated, and when."""

from __future__ import annotations

from random import random
from typing import Final

from deskwire_sdk._requests import Request
from deskwire_sdk.errors import APIError, ConnectionFailed, DeskwireError

_FIRST_RETRY_DELAY_S: Final = 0.5
_RETRY_DELAY_MAX_S: Final = 8.0
_RETRY_AFTER_MAX_S: Final = 60.0  # a longer pause is the caller's to plan
_CARRIED_OUT: Final = {
    "outcome_unknown",
    "not_confirmed",
}  # 503 after which the request may have taken effect


def retry_delay(request: Request, failure: DeskwireError, attempt: int, max_retries: int) -> float | None:
    """Return the seconds to wait before the request is sent again; None if it must not be.

    Args:
        attempt: the number of attempts before this failure, from 0.
    """
    if attempt >= max_retries or not request.replayable or not _temporary(request, failure):
        return None
    wanted = failure.retry_after if isinstance(failure, APIError) else None
    if wanted is None:
        delay = min(_RETRY_DELAY_MAX_S, _FIRST_RETRY_DELAY_S * 2.0**attempt)
        return delay * (0.5 + random() / 2)
    if wanted > _RETRY_AFTER_MAX_S:
        return None
    return wanted + random() * min(1.0, _FIRST_RETRY_DELAY_S * 2.0**attempt)  # not all clients at once


def _temporary(request: Request, failure: DeskwireError) -> bool:
    """Return whether the same request may succeed later and cannot take effect twice."""
    if isinstance(failure, ConnectionFailed):
        return request.harmless or not failure.sent
    if not isinstance(failure, APIError):
        return False
    if failure.status == 409:  # the first request with this Idempotency-Key is still in progress
        return failure.retry_after is not None
    if failure.status == 429:
        return True
    if failure.status == 503 and failure.code is not None:
        return request.harmless or failure.code not in _CARRIED_OUT
    return failure.status >= 500 and request.harmless
