"""All planted bugs."""

from __future__ import annotations

from collections.abc import Sequence

from tests.plants import customers, held, nodes, service, storage, stream
from tests.plants.registry import PLANTS, Tool, planted

__all__ = ["PLANTS", "customers", "held", "nodes", "planted", "plants_for", "service", "storage", "stream"]


def plants_for(tool: Tool, *, thorough: bool = True) -> Sequence[str]:
    """Return the bugs that a tool has to find; without `thorough`, only those that it finds within seconds."""
    return [
        name
        for name, plant in PLANTS.items()
        if tool in plant.tools and (thorough or tool not in plant.thorough)
    ]
