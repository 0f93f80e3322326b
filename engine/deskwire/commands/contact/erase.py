"""An erasure, followed until nothing is left: one that takes long goes on by itself, and is asked for again."""

from __future__ import annotations

from typing import Any, Final

import trio

from deskwire.commands.api_client.service import Away, Refused, Service
from deskwire.engine.core.values import ProgressReporter

_ANSWER_S: Final = 30.0
"""The time that the service may take to answer; it does so within 20 seconds, and goes on."""
_PAUSE_S: Final = 10.0
_UNDER_WAY: Final = "erasure_under_way"


async def erased(service: Service, path: str, tell: ProgressReporter) -> dict[str, Any]:
    """Erase the contact at this path; returns the answer to the last call. Raises ServiceError."""
    began = False
    while True:
        tell("Erasing")
        try:
            return dict(await service.delete(path, _ANSWER_S))
        except Away as away:
            if away.code != _UNDER_WAY:
                raise
            began = True
            await trio.sleep(away.retry_after_s or _PAUSE_S)
        except Refused as refusal:
            if not began or refusal.code != "contact_not_found":
                raise
            return {"id": None, "deleted": True}  # it ended between two calls
