"""The schemas of the API's objects as JSON, for the types of the desk's modules: `python -m tests.web.tools.description`.

Routes are left out, because their types would be a megabyte.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from typing import Any

from deskwire.http.description.openapi.document import closed_document


def shapes() -> dict[str, Any]:
    """Return the description of the API without its routes.

    The desk belongs to one release of the service, so its types have exactly the values of this release.
    """
    whole = closed_document()
    return {
        "openapi": whole["openapi"],
        "info": {"title": "Deskwire", "version": "3"},
        "paths": {},
        "components": {"schemas": _bare(whole["components"]["schemas"])},
    }


def _bare(schema: Any) -> Any:
    """Return a schema without descriptions; a property named `description` stays."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    words = {"description", "examples", "example"}
    return {
        name: _bare(each)
        for name, each in schema.items()
        if not (name in words and isinstance(each, str | list))
    }


def typed() -> str:
    """Return the first line of the generated types: a digest that shows without Node.js whether they are current."""
    digest = sha256(json.dumps(shapes(), sort_keys=True).encode()).hexdigest()
    return f"// Made by `make web-types` of the shapes {digest[:32]}.\n"


if __name__ == "__main__":
    print(typed() if "--digest" in sys.argv else json.dumps(shapes(), indent=1, sort_keys=True), end="")
