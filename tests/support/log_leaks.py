"""Looks through what every test has made the service say for credentials; a test in whose log one is fails.

The services of tests in this process log to the captured output, without the log's redaction: it is the code that
must not say secrets. Those in processes of their own log to files under `tmp_path`, as an operator would have it.
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
    "a token": re.compile(r"\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}"),
    "a signed URL": re.compile(r"signature=[\w-]{43}"),
    "a header with a credential": re.compile(r"(?i)\b(?:bearer|basic) [\w.+/=-]{16,}"),
}
_WELCOME: Final = re.compile(r"^Deskwire is running at .*?Ctrl-C\.$", re.MULTILINE | re.DOTALL)
"""What the first start prints for the operator, once (decisions 2): that is no log."""

_known: dict[str, set[str]] = {}
"""The secrets by their first characters, as there are thousands in the end, and a log is looked through for each test."""
_LEAST: Final = 8
"""Characters of a known secret; a shorter one is found by accident."""


def plant(secret: str) -> str:
    """The secret, which no log may have from now on."""
    _known.setdefault(secret[:_LEAST], set()).add(secret)
    return secret


def leaks(text: str) -> Iterator[str]:
    """What a log has that it must not have, without showing it."""
    logged = _WELCOME.sub("", text)
    yield from (kind for kind, shape in SHAPES.items() if shape.search(logged))
    beginnings = {logged[at : at + _LEAST] for at in range(len(logged))} & _known.keys()
    known = sorted(each for beginning in beginnings for each in _known[beginning])
    yield from (f"the secret {each[:3]}…" for each in known if each in logged)


def plant_of(directory: Path) -> None:
    """Plant what the services under this directory were started with."""
    for path in _files(directory, "secret"):
        _plant_all([path.read_text(errors="replace").strip()])
    for path in _files(directory, "demo.json"):
        _plant_all(_secrets(path.read_text(errors="replace")))


def _secrets(demo: str) -> Iterator[str]:
    """What a `demo.json` has of them; some tests write one of their own, with less or with nothing to read."""
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
    """The logs of services that ran as processes of their own."""
    return "\n".join(path.read_text(errors="replace") for path in _files(directory, "*.log"))


def _files(directory: Path, name: str) -> list[Path]:
    found = (path for depth in ("", "*/", "*/*/") for path in directory.glob(depth + name))
    return [path for path in found if path.is_file()]


def _plant_all(secrets: Iterable[str]) -> None:
    for each in secrets:
        if len(each) >= _LEAST:
            plant(each)
