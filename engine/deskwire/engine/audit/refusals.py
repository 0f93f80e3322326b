"""Refused sign-ins: each kind is recorded once in a quarter of an hour, as a refusal must stay cheap."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from deskwire.engine.audit.trail import COUNTED_MS

KEPT_MAX: Final = 10_000
"""The refusals that are remembered, about 2 MB. One that is forgotten too early is counted in its record once more."""


class Refusals:
    """A memory of the refusals that the trail has."""

    def __init__(self) -> None:
        self._recorded: OrderedDict[tuple[int, str | None, str | None], None] = OrderedDict()

    def is_news(self, account: str | None, network: str | None, at: int) -> bool:
        """Tell whether the trail lacks this refusal in this quarter of an hour, and remember it."""
        key = (at // COUNTED_MS, account, network)
        if key in self._recorded:
            return False
        self._recorded[key] = None
        if len(self._recorded) > KEPT_MAX:
            self._recorded.popitem(last=False)
        return True
