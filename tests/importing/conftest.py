"""The real service for the command."""

from tests.wire.conftest import service

__all__ = ["service"]
