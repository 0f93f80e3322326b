"""The outline of the API's description: a line for each of its parts, with a digest of its text.

`make docs` writes it to the file beside this module. A diff of that file shows which parts of the public document a
change of the code affects; moving or renaming code affects none.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import orjson

from deskwire.engine.core.build import version
from deskwire.http.description.openapi.document import description

FILE: Final = Path(__file__).with_name("outline.txt")
_DIGITS: Final = 16


def outline(served: bytes | None = None) -> str:
    """Return the lines for a document, by default for the bytes that the service serves."""
    return "".join(f"{line}\n" for line in _lines(description().body if served is None else served))


def _lines(served: bytes) -> Iterator[str]:
    # The version names the commit, so that every commit would differ.
    served = served.replace(f'"version":"{version()}"'.encode(), b'"version":""', 1)
    document = orjson.loads(served)
    yield f"document {_digest(served)}"
    for part in ("openapi", "info", "servers"):
        yield f"{part} {_digest(orjson.dumps(document[part]))}"
    yield from (f"tag {each['name']!r} {_of(each)}" for each in document["tags"])
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield f"{method.upper()} {path} {operation['operationId']} {operation['tags']} {_of(operation)}"
    for kind, operations in document["webhooks"].items():
        yield f"webhook {kind} {operations['post']['operationId']} {_of(operations)}"
    for kind, parts in document["components"].items():
        yield from (f"{kind} {name} {_of(part)}" for name, part in parts.items())


def _of(part: Any) -> str:
    return _digest(orjson.dumps(part))


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:_DIGITS]


if __name__ == "__main__":
    FILE.write_text(outline())
