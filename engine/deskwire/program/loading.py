"""The libraries that others load for a terminal, and how a service, which has none, is loaded without them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import ModuleType
from typing import Final, cast

_FOR_TERMINALS: Final = ("pygments", "rich")
"""What structlog loads for coloured tracebacks and httpx for its command line, if it is there: 75 modules, 5 MB."""


@contextmanager
def without_terminal() -> Iterator[None]:
    """Have those libraries not be found by what is imported inside, except one that is loaded already.

    A module that is None is not found (https://docs.python.org/3/reference/import.html#the-module-cache).
    """
    modules = cast(MutableMapping[str, ModuleType | None], sys.modules)
    hidden = [name for name in _FOR_TERMINALS if name not in modules]
    modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del modules[name]
