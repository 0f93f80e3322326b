"""Bugs of held messages."""

from __future__ import annotations
