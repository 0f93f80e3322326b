"""Calls that outlast the service: while it is away it is asked again, with growing pauses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import trio

from deskwire.commands.api_client.service import Away, Service

PAUSE_S: Final = 0.5
PAUSE_MAX_S: Final = 10.0


class Patient:
    """GETs that wait for a service that is away, and say so.

    Args:
        patient: false lets Away through at once.
        note: takes a line for people.
    """

    def __init__(self, service: Service, patient: bool, note: Callable[[str], None]) -> None:
        self._service = service
        self._patient = patient
        self._note = note

    async def get(self, path: str, params: Mapping[str, str] | None = None, wait_s: float = 0) -> bytes:
        """Get a path as `Service.get` does. Raises Refused, and Away unless patient."""
        pause_s, said = PAUSE_S, False
        while True:
            try:
                answer = await self._service.get(path, params, wait_s)
            except Away as away:
                if not self._patient:
                    raise
                if not said:
                    self._note(f"{away}; trying again until it is back.")
                    said = True
                await trio.sleep(min(max(pause_s, away.retry_after_s or 0), PAUSE_MAX_S))
                pause_s *= 2
            else:
                if said:
                    self._note("The service is back.")
                return answer
