"""On whose behalf a task works, so that nobody's work holds up everybody's (ADR 43).

Tasks that a request begins inherit it. What works for the service itself works for nobody.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextvars import ContextVar
from typing import Final


class Tenant:
    """A project, a user or an address, with a request under way.

    Args:
        who: tells it from others.
        waiting: whether the request is under way still, so that somebody waits.
    """

    __slots__ = ("waiting", "who")

    def __init__(self, who: Hashable) -> None:
        self.who = who
        self.waiting = True


TENANT: Final[ContextVar[Tenant | None]] = ContextVar("tenant", default=None)


def present_tenant() -> Hashable:
    """On whose behalf the present task works; None for the service itself."""
    tenant = TENANT.get()
    return None if tenant is None else tenant.who
