"""The shapes of the API's objects as JSON, for the types of the desk's modules: `python -m tests.web.tools.description`.

Only shapes: what the desk calls is in its modules, and the types of all routes would be a megabyte.
"""

from __future__ import annotations

import json
from typing import Any

from deskwire.commands.reference.openapi.document import document


def shapes() -> dict[str, Any]:
    """Return the description of the API without its routes."""
    whole = document()
    return {
        "openapi": whole["openapi"],
        "info": {"title": "Deskwire", "version": "3"},
        "paths": {},
        "components": {"schemas": whole["components"]["schemas"]},
    }


if __name__ == "__main__":
    print(json.dumps(shapes(), indent=1, sort_keys=True))
