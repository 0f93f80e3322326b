"""Requests before they are sent: paths, parameters and bodies in the form that the service reads."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote
from uuid import uuid4


class Omit:
    """The type of `OMIT`, the default of optional body fields: None would be sent as null."""

    def __repr__(self) -> str:
        return "OMIT"

    def __bool__(self) -> bool:
        return False


OMIT: Final = Omit()

FileInput = str | Path | tuple[str, bytes] | IO[bytes]
"""A file to upload: its path, its name with its content, or an open file."""

_HARMLESS: Final = frozenset({"GET", "HEAD", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the service.

    Args:
        path: with encoded segments, or a whole URL.
        query: None is left out.
        headers: None is left out.
        body: the fields of a JSON object, OMIT is left out; None for no body.
        lines: objects or encoded lines of a body in NDJSON.
        file: sent as the field `file` of a form.
        credential: whether the call takes one.
        project: whether the call takes the header `project`.
        idempotent: whether the call takes an `Idempotency-Key`, which is made if `idempotency_key` is None.
    """

    method: str
    path: str
    query: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str | None] = field(default_factory=dict)
    body: Mapping[str, object] | None = None
    lines: Iterable[Mapping[str, Any] | bytes] | None = None
    file: FileInput | None = None
    credential: bool = True
    project: bool = False
    idempotent: bool = False
    idempotency_key: str | None = None

    @property
    def harmless(self) -> bool:
        """True if the request may be carried out twice without a further effect."""
        return self.method in _HARMLESS or self.idempotent

    @property
    def wait(self) -> float:
        """The seconds that the service may hold the response back, because the call waits for events."""
        wanted = self.query.get("wait")
        return float(wanted) if isinstance(wanted, int | float) else 0.0

    @property
    def replayable(self) -> bool:
        """True if the body can be sent a second time."""
        return self.lines is None or iter(self.lines) is not self.lines

    def key(self) -> str | None:
        """Return the `Idempotency-Key` for all attempts of the request; None if the call takes none."""
        if not self.idempotent:
            return None
        return str(uuid4()) if self.idempotency_key is None else self.idempotency_key

    def params(self) -> dict[str, str]:
        """Return the query parameters as text."""
        return {name: _text(value) for name, value in self.query.items() if value is not None}


def segment(value: str) -> str:
    """Return an id as one segment of a path.

    Raises:
        ValueError: the id is empty, which would make another path.
    """
    if not value:
        raise ValueError("An id must not be empty.")
    return {".": "%2E", "..": "%2E%2E"}.get(value) or quote(value, safe="")


def encoded(body: Mapping[str, object]) -> bytes:
    """Return a body as JSON, without the fields that are OMIT.

    Raises:
        ValueError: a time has no offset, or a number is infinite or NaN.
        TypeError: a value has no form in JSON.
    """
    given = {name: value for name, value in body.items() if not isinstance(value, Omit)}
    return json.dumps(
        given, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_other
    ).encode()


def encoded_lines(lines: Iterable[Mapping[str, Any] | bytes]) -> Iterator[bytes]:
    """Yield a body in NDJSON, a line at a time."""
    for line in lines:
        yield line.rstrip(b"\n") + b"\n" if isinstance(line, bytes) else encoded(line) + b"\n"


class AsyncLines(AsyncIterable[bytes]):
    """A body in NDJSON for an asynchronous client."""

    def __init__(self, lines: Iterable[Mapping[str, Any] | bytes]) -> None:
        self._lines = encoded_lines(lines)

    def __aiter__(self) -> AsyncLines:
        return self

    async def __anext__(self) -> bytes:
        for line in self._lines:
            return line
        raise StopAsyncIteration


Lines: Final = encoded_lines  # for a synchronous client


def read_file(file: FileInput) -> tuple[str, bytes]:
    """Return the name and the content of a file to upload; an open file is read from its position on."""
    if isinstance(file, tuple):
        return file
    if isinstance(file, str | Path):
        return Path(file).name, Path(file).read_bytes()
    name = getattr(file, "name", None)
    return Path(name).name if isinstance(name, str) else "file", file.read()


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _time(value) if isinstance(value, datetime) else str(value)


def _other(value: object) -> str:
    if isinstance(value, datetime):
        return _time(value)
    raise TypeError(f"{value!r} has no form in JSON")


def _time(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError(f"{value!r} has no offset: give it one, for example datetime.now(UTC)")
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
