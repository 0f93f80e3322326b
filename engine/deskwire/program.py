"""The whole program in one nursery tree: storage, log, actors, deliveries and stream, HTTP front.

`run` builds it from the outside in and takes it down from the inside out; every step of the way down has
a bound of its own.
"""

from __future__ import annotations

from typing import Final

import structlog

log: Final = structlog.get_logger(__name__)
