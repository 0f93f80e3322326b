"""The error that ends a demo."""

from __future__ import annotations


class ReplayError(Exception):
    """The demo can't start or go on; the text says why and, if possible, what to do."""
