"""Default sizes of request bodies that settings change, for the settings and for the description of the API.

It imports nothing, because every command reads the settings.
"""

from types import MappingProxyType
from typing import Final

_MIB: Final = 1 << 20

DEFAULT_BODY_LIMITS: Final = MappingProxyType(
    {
        "body_limit_bytes": 1 * _MIB,
        "network_logs_limit_bytes": 2 * _MIB,
        "upload_limit_bytes": 25 * _MIB,
    }
)
"""The default number of bytes by the name of the setting."""


def variable_of(setting: str) -> str:
    """Return the environment variable of one of these settings."""
    return f"DESKWIRE_{setting.upper()}"
