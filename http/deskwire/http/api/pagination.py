"""Pages of lists: their parameters, and the cursors by which one page leads to the next (decisions 1)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, TypeVar

import orjson
from pydantic import Field

from deskwire.engine.core.errors import BadRequest, Problem
from deskwire.http.api.input.validation import Query, bad_query

T = TypeVar("T")

LIMIT_MAX: Final = 200
"""Items in one page of a list (decisions 1)."""


class Paged(Query):
    """The parameters of a list. Its cursors have as many integers as `parts` says.

    An empty `cursor` asks for the first page, unless the list refuses it.
    """

    parts: ClassVar[int] = 1
    refuses_empty_cursor: ClassVar[bool] = False

    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX)] = 50
    cursor: str | None = None

    @classmethod
    def further(cls, given: Mapping[str, str]) -> None:
        """Check the cursor. Raises BadRequest."""
        if given.get("cursor"):
            decode_cursor(given["cursor"], cls.parts)

    @property
    def rows(self) -> int:
        """The number of rows to read: one more than the page shows, which tells whether there are more."""
        return self.limit + 1

    @property
    def place(self) -> list[int] | None:
        """The place in the list behind which the page begins; None for the first page. Raises BadRequest."""
        if self.cursor is None or (not self.cursor and not self.refuses_empty_cursor):
            return None
        return decode_cursor(self.cursor, self.parts)

    @property
    def row(self) -> int | None:
        """The row behind which the page begins, for a list whose cursors have one part. Raises BadRequest."""
        place = self.place
        return None if place is None else place[0]


EMPTY_PAGE: Final[Mapping[str, Any]] = {"items": [], "nextCursor": None}


def page(
    query: Paged,
    rows: Sequence[T],
    view: Callable[[T], Mapping[str, Any]],
    place: Callable[[T], int | tuple[int, ...]],
) -> dict[str, Any]:
    """Return a page of a list, with the cursor of the next page if there is one.

    Args:
        rows: the rows that were read, up to `query.rows`.
        view: makes the item of a row.
        place: a row's place in the list, the parts of a cursor.
    """
    shown = rows[: query.limit]
    cursor = None
    if len(rows) > query.limit:
        last = place(shown[-1])
        cursor = encode_cursor(*((last,) if isinstance(last, int) else last))
    return {"items": [view(row) for row in shown], "nextCursor": cursor}


def encode_cursor(*parts: int) -> str:
    """Write a place in a list as an opaque text."""
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def decode_cursor(cursor: str, size: int) -> list[int]:
    """Return the parts of a cursor. Raises BadRequest if no list has made it."""
    try:
        parts: Any = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error):
        parts = None
    if (
        not isinstance(parts, list)
        or len(parts) != size
        or not all(type(part) is int and abs(part) < 1 << 63 for part in parts)
    ):
        raise bad_cursor("This is not a cursor that this list has given.")
    return parts


def bad_cursor(message: str) -> BadRequest:
    """Make the refusal of a cursor."""
    return bad_query(Problem("?cursor", "bad_cursor", message))
