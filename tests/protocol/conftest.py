"""The real service, for what is sent to it as bytes."""

from tests.api.conftest import service

__all__ = ["service"]
