"""The file of a multipart form, passed on while it arrives (RFC 7578).

The parser is Werkzeug's, without I/O.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable
from typing import Final

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import (
    Data,
    Epilogue,
    Event,
    Field,
    File,
    MultipartDecoder,
    NeedData,
)

from deskwire.engine.core.errors import BadRequest, Invalid, Problem, TooLarge, UnsupportedMediaType
from deskwire.engine.core.text import NUL, NUL_PROBLEM_CODE
from deskwire.http.api.input.headers import Fields

FIELD: Final = "file"
# Bytes of a form in addition to its file.
OVERHEAD: Final = 64 * 1024

_PIECE: Final = 64 * 1024
# Bytes that the parser may hold back: a chunk and the head of a part.
_BUFFER: Final = 4 * _PIECE

# Bytes between a delimiter and the end of its line: two dashes, and white space (RFC 2046).
_PADDING_MAX: Final = 64

_PARTS_MAX: Final = 20
_BOUNDARY_MAX: Final = 70  # RFC 2046 section 5.1.1


def boundary_of(headers: Fields) -> bytes:
    """Return the boundary of a form.

    Raises UnsupportedMediaType if the body is not a form, BadRequest if it has no boundary.
    """
    kind, options = parse_options_header(headers.get("content-type"))
    if kind != "multipart/form-data":
        raise UnsupportedMediaType(f"The body must be multipart/form-data, not {kind or 'of no type'}.")
    boundary = options.get("boundary", "")
    if not 1 <= len(boundary) <= _BOUNDARY_MAX or not boundary.isascii():
        raise malformed("the content type has no boundary of 1 to 70 characters")
    return boundary.encode()


async def read_file(
    body: AsyncIterable[bytes], boundary: bytes, limit: int, write: Callable[[bytes], Awaitable[None]]
) -> str:
    """Pass the bytes of the field `file` to `write` and return the file's name.

    The client chooses the name.

    Args:
        limit: bytes of the whole form.

    Raises BadRequest for a malformed form, TooLarge, and Invalid naming every wrong field.
    """
    form = _Form(boundary)
    size = 0
    async for chunk in body:
        size += len(chunk)
        if size > limit:
            raise TooLarge(f"The body may have at most {limit:,} bytes.")
        for start in range(0, len(chunk), _PIECE):
            for piece in form.feed(chunk[start : start + _PIECE]):
                await write(piece)
    for piece in form.feed(None):
        await write(piece)
    return form.filename()


class _Form:
    """The parser's events, of which the file's data is passed on.

    Problems are collected.
    """

    def __init__(self, boundary: bytes) -> None:
        self._decoder = MultipartDecoder(boundary, _BUFFER, max_parts=_PARTS_MAX)
        self._delimiter = b"\r\n--" + boundary
        self._held = b""
        self._name: str | None = None
        self._wanted = False
        self._problems: list[Problem] = []

    def feed(self, data: bytes | None) -> list[bytes]:
        """Return the file's bytes in `data`.

        `None` ends the form.
        """
        try:
            pieces = self._decode(self._ready(data))
            return pieces if data is not None else pieces + self._decode(None)
        except ValueError as error:
            raise malformed(str(error) if data is None else "a part's head can't be read") from None
        except RequestEntityTooLarge:
            raise malformed("it has too many parts, or one with too long a head") from None

    def _ready(self, data: bytes | None) -> bytes:
        """Return the bytes that the parser may have now.

        A delimiter is held back until the end of its line has arrived. Werkzeug 3.1.9 counts the carriage
        return of the delimiter as part of the file if its input ends right after `--` and the boundary.
        """
        held = self._held + (data or b"")
        end = len(held) if data is None else max(0, len(held) - len(self._delimiter) + 1)
        start = held.rfind(self._delimiter)
        if start >= 0 and data is not None:
            line_end = held.find(b"\n", start + len(self._delimiter))
            if line_end >= 0:
                end = max(end, line_end + 1)
            elif len(held) - start <= len(self._delimiter) + _PADDING_MAX:
                end = start
        self._held = held[end:]
        return held[:end]

    def _decode(self, data: bytes | None) -> list[bytes]:
        self._decoder.receive_data(data)
        return [piece for event in self._events() if (piece := self._note(event))]

    def _events(self) -> list[Event]:
        events = []
        while not isinstance(event := self._decoder.next_event(), NeedData):
            events.append(event)
            if isinstance(event, Epilogue):
                break
        return events

    def _note(self, event: Event) -> bytes:
        match event:
            case File(name=name, filename=filename):
                self._begin(name, filename)
            case Field(name=name):
                self._begin(name, None)
            case Data(data=data) if self._wanted:
                return data
            case _:
                pass
        return b""

    def _begin(self, name: str | None, filename: str | None) -> None:
        self._wanted = name == FIELD and filename is not None and self._name is None
        if self._wanted:
            self._name = filename
            if filename is not None and NUL in filename:
                self._problems.append(Problem(f"/{FIELD}", NUL_PROBLEM_CODE, "A file name has no U+0000."))
        elif name != FIELD:
            pointer = f"/{(name or '').replace('~', '~0').replace('/', '~1')}"
            self._problems.append(Problem(pointer, "unknown_field", "There is no such field."))
        elif filename is None:
            self._problems.append(Problem(f"/{FIELD}", "invalid", "This must be a file, with a file name."))
        else:
            self._problems.append(Problem(f"/{FIELD}", "repeated", "One upload is one file."))

    def filename(self) -> str:
        """Return the file's name.

        Raises Invalid if there is none, or for additional fields.
        """
        if self._name is None and not any(each.pointer == f"/{FIELD}" for each in self._problems):
            self._problems.append(Problem(f"/{FIELD}", "required", "This field is required."))
        if self._problems:
            raise Invalid(*self._problems)
        return self._name or ""


def malformed(reason: str) -> BadRequest:
    """Return the refusal of a malformed form."""
    return BadRequest(f"The form can't be read: {reason}.", code="malformed_body")
