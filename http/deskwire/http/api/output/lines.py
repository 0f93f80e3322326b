"""JSON as it is sent: one line that ends, so that a terminal's prompt stands behind it on a line of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson


def line_of(value: Mapping[str, Any]) -> bytes:
    """Return an object as a line of JSON."""
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
