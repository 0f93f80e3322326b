"""The one file of a multipart form, passed on while it comes in (RFC 7578). The parser is Werkzeug's, without I/O."""

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
OVERHEAD: Final = 64 * 1024
"""Bytes that a form may have besides its file."""

_PIECE: Final = 64 * 1024
_BUFFER: Final = 4 * _PIECE
"""What the parser may hold back: a piece, and a part's head."""

_PADDING_MAX: Final = 64
"""Bytes between a delimiter and the end of its line; there are none but two dashes, and by RFC 2046 blanks."""

_PARTS_MAX: Final = 20
_BOUNDARY_MAX: Final = 70  # RFC 2046 section 5.1.1


def boundary_of(headers: Fields) -> bytes:
    """The boundary of a form.

    Raises UnsupportedMediaType if the body is none, BadRequest if it has no boundary.
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
    """Give the bytes of the field `file` to `write`; returns the name that the client gives the file.

    Args:
        limit: bytes that the whole form may have.

    Raises BadRequest if it can't be read, TooLarge, and Invalid naming every field that is wrong.
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
    """The parser's events, of which the file's data matters; what is wrong gathers."""

    def __init__(self, boundary: bytes) -> None:
        self._decoder = MultipartDecoder(boundary, _BUFFER, max_parts=_PARTS_MAX)
        self._delimiter = b"\r\n--" + boundary
        self._held = b""
        self._name: str | None = None
        self._wanted = False
        self._problems: list[Problem] = []

    def feed(self, data: bytes | None) -> list[bytes]:
        """The file's bytes that `data` brings; None is the end of the form."""
        try:
            pieces = self._decode(self._ready(data))
            return pieces if data is not None else pieces + self._decode(None)
        except ValueError as error:
            raise malformed(str(error) if data is None else "a part's head can't be read") from None
        except RequestEntityTooLarge:
            raise malformed("it has too many parts, or one with too long a head") from None

    def _ready(self, data: bytes | None) -> bytes:
        """Return what the parser may have now: no delimiter without the end of its line.

        Werkzeug 3.1.9 counts the delimiter's carriage return to the file if what it has ends right behind `--`
        and the boundary.
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
        """The file's name. Raises Invalid if there is none, or something besides."""
        if self._name is None and not any(each.pointer == f"/{FIELD}" for each in self._problems):
            self._problems.append(Problem(f"/{FIELD}", "required", "This field is required."))
        if self._problems:
            raise Invalid(*self._problems)
        return self._name or ""


def malformed(reason: str) -> BadRequest:
    """The refusal of a form that can't be read."""
    return BadRequest(f"The form can't be read: {reason}.", code="malformed_body")
