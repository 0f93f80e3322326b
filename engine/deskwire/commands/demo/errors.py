"""Why a demo can't go on."""

from __future__ import annotations


class DemoError(Exception):
    """The demo can't start or go on; the text says why and, where there is one, what to do."""
