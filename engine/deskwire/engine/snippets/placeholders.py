"""The placeholders in a snippet, such as `{contact.name}`. The service does not replace them; the client does."""

from __future__ import annotations

import re
from typing import Final

PLACEHOLDERS: Final = ("contact.name", "agent.name")
"""The placeholders that there are."""

_LOOKALIKE: Final = re.compile(r"\{([A-Za-z][A-Za-z0-9_.]*)\}")
"""A name in braces. Braces around anything else are text, such as those of JSON."""


def unknown_placeholders(text: str) -> tuple[str, ...]:
    """Return the names in braces that are no placeholders, each once, in their order."""
    return tuple(dict.fromkeys(name for name in _LOOKALIKE.findall(text) if name not in PLACEHOLDERS))
