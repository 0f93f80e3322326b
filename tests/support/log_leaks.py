"""Searches the service's log of every test for credentials; a test whose log has one fails.

Services of tests in this process log to the captured output, without the log's redaction: the code itself must not
log secrets. Those in processes of their own log to files under `tmp_path`, with redaction as for an operator.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

SHAPES: Final = {
    "a server key": re.compile(r"\bsk_[0-9A-Za-z]{43}\b"),
    "a machine credential": re.compile(r"\bmk_[0-9A-Za-z]{43}\b"),
    "a webhook's secret": re.compile(r"\bwhsec_[0-9A-Za-z+/=_-]{16,}"),
    "a channel's secret": re.compile(r"\bchs_[\w-]{43}\b"),
    "a customer's token": re.compile(r"\bc[tv]_[\w-]{43}"),
    "a token": re.compile(r"\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}"),
    "a signed URL": re.compile(r"signature=[\w-]{43}"),
    "a header with a credential": re.compile(r"(?i)\b(?:bearer|basic) [\w.+/=-]{16,}"),
}
_WELCOME: Final = re.compile(r"^Deskwire is running at .*?Ctrl-C\.$", re.MULTILINE | re.DOTALL)
"""The output of the first start for the operator, once (decisions 2), which is no log."""

_known: dict[str, set[str]] = {}
"""The secrets by their first characters, because there are thousands, and every test's log is searched for them."""
_LEAST: Final = 8
"""Minimum length of a known secret; a shorter one would match by accident."""


def plant(secret: str) -> str:
    """Register a secret that no log may contain from now on; return it."""
    _known.setdefault(secret[:_LEAST], set()).add(secret)
    return secret


def leaks(text: str) -> Iterator[str]:
    """Yield descriptions of the secrets in a log, without showing them."""
    logged = _WELCOME.sub("", text)
    yield from (kind for kind, shape in SHAPES.items() if shape.search(logged))
    beginnings = {logged[at : at + _LEAST] for at in range(len(logged))} & _known.keys()
    known = sorted(each for beginning in beginnings for each in _known[beginning])
    yield from (f"the secret {each[:3]}…" for each in known if each in logged)


def plant_of(directory: Path) -> None:
    """Register the secrets of the services under this directory."""
    for path in _files(directory, "secret"):
        _plant_all([path.read_text(errors="replace").strip()])
    for path in _files(directory, "demo.json"):
        _plant_all(_secrets(path.read_text(errors="replace")))


def _secrets(demo: str) -> Iterator[str]:
    """Yield the secrets in a `demo.json`; some tests write files with fewer of them, or unreadable ones."""
    try:
        document: Any = json.loads(demo)
    except ValueError:
        return
    match document:
        case {"user": {"password": str(password)}}:
            yield password
    for name in ("serverKey", "token"):
        if isinstance(document, dict) and isinstance(document.get(name), str):
            yield document[name]


def logs_of(directory: Path) -> str:
    """Return the logs of services that ran as processes of their own."""
    return "\n".join(path.read_text(errors="replace") for path in _files(directory, "*.log"))


def _files(directory: Path, name: str) -> list[Path]:
    found = (path for depth in ("", "*/", "*/*/") for path in directory.glob(depth + name))
    return [path for path in found if path.is_file()]


def _plant_all(secrets: Iterable[str]) -> None:
    for each in secrets:
        if len(each) >= _LEAST:
            plant(each)
