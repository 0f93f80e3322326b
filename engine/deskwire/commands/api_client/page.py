"""A list's items as the very bytes that they were sent as, to pass on or to compare."""

from __future__ import annotations

import json
from typing import Final

_ITEMS: Final = '{"items":['
_DECODER: Final = json.JSONDecoder()


def raw_items(page: bytes) -> list[bytes]:
    """Return the items of a page of a list.

    Raises ValueError if the page is not laid out as the service does it.
    """
    text = page.decode()
    if not text.startswith(_ITEMS):
        raise ValueError("the page does not begin with its items")
    items, at = list[bytes](), len(_ITEMS)
    while text[at : at + 1] != "]":
        at += text[at : at + 1] == ","
        _, end = _DECODER.raw_decode(text, at)
        items.append(text[at:end].encode())
        at = end
    return items
