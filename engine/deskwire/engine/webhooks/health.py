"""The health of an endpoint, told to the other endpoints of its project that ask for it: one event for each transition."""

from __future__ import annotations

from typing import Literal

from deskwire.engine.events.types import Draft
from deskwire.engine.webhooks.delivery import HeldBack
from deskwire.engine.webhooks.endpoint import Endpoint, endpoint_health

Transition = Literal["circuit.opened", "circuit.closed", "disabled", "enabled"]


def health_event(transition: Transition, endpoint: Endpoint, waiting: HeldBack, at: int) -> Draft:
    """Return the event of an endpoint's transition, `at` this time (ms), after which it is as given."""
    return Draft(f"webhook.{transition}", None, {"endpoint": endpoint_health(endpoint, at, waiting)})
