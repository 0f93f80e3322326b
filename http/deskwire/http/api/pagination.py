"""Pages of lists: their parameters and cursors (decisions 1)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Annotated, Any, ClassVar, Final, TypeVar

import orjson
from pydantic import Field, ValidationInfo, field_validator

from deskwire.engine.core.errors import BadRequest, Problem
from deskwire.engine.core.ids import is_id
from deskwire.http.api.input.validation import Query, Time, bad_query

T = TypeVar("T")

# Items in one page of a list (decisions 1).
LIMIT_MAX: Final = 200


class Paged(Query):
    """The parameters of a list. Its cursors have `parts` integers.

    An empty `cursor` requests the first page, unless the list refuses it.
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
        """The number of rows to read, one more than the page shows.

        The additional row shows whether a next page exists.
        """
        return self.limit + 1

    @property
    def place(self) -> list[int] | None:
        """The key of the last item before the page.

        Returns None for the first page. Raises BadRequest.
        """
        if self.cursor is None or (not self.cursor and not self.refuses_empty_cursor):
            return None
        return decode_cursor(self.cursor, self.parts)

    @property
    def row(self) -> int | None:
        """The row number of the last item before the page.

        It serves lists whose cursors have one part. Raises BadRequest.
        """
        place = self.place
        return None if place is None else place[0]


class ByChange(Paged):
    """The parameters of a list for mirrors.

    They add the time of change, and a cursor that keeps the first page's `asOf`. Its cursors have `parts`
    integers followed by that event id. The first integer is the list's number (`list_number`), so that
    other lists refuse the cursor.
    """

    parts = 3

    updated_since: Time | None = None
    updated_before: Time | None = None

    @field_validator("updated_before")
    @classmethod
    def _behind_since(cls, before: int | None, info: ValidationInfo) -> int | None:
        since = info.data.get("updated_since")
        if before is not None and since is not None and before <= since:
            raise ValueError("This must be later than `updatedSince`.")
        return before

    @classmethod
    def further(cls, given: Mapping[str, str]) -> None:
        """Check the cursor. Raises BadRequest."""
        if given.get("cursor"):
            decode_cursor_as_of(given["cursor"], cls.parts)

    def goes_on(self, number: int) -> tuple[list[int], str] | None:
        """Return the key of the last item before the page, and `asOf`.

        The key lacks the list's number. Returns None for the first page.

        Args:
            number: of this list.

        Raises BadRequest for a cursor that this list has not issued.
        """
        if not self.cursor:
            return None
        place, as_of = decode_cursor_as_of(self.cursor, self.parts)
        if place[0] != number:
            raise bad_cursor("This cursor is of a list with another filter or order.")
        return place[1:], as_of


EMPTY_PAGE: Final[Mapping[str, Any]] = {"items": [], "nextCursor": None}


def page(
    query: Paged,
    rows: Sequence[T],
    view: Callable[[T], Mapping[str, Any]],
    place: Callable[[T], int | tuple[int, ...]],
    as_of: str | None = None,
    reached: tuple[int, ...] | None = None,
) -> dict[str, Any]:
    """Return a page of a list, with the cursor of the next page if there is one.

    Args:
        rows: the rows that were read, up to `query.rows`.
        view: makes the item of a row.
        place: returns the key of a row, the parts of a cursor.
        as_of: the event id that all pages of the list show, if it has one; see `ByChange`.
        reached: the key at which a search stopped before its page was full, and from which it continues.
    """
    shown = rows[: query.limit]
    cursor = None
    last = reached if len(rows) <= query.limit else place(shown[-1])
    if last is not None:
        cursor = encode_cursor(*((last,) if isinstance(last, int) else last), as_of=as_of)
    found = {"items": [view(row) for row in shown], "nextCursor": cursor}
    return found if as_of is None else {**found, "asOf": as_of}


def list_number(project: str, query: Paged) -> int:
    """Return a number that differs between projects, filters and orders of a list."""
    what = query.model_dump(exclude={"cursor", "limit"}, exclude_none=True)
    text = orjson.dumps([project, what], option=orjson.OPT_SORT_KEYS)
    return int.from_bytes(blake2b(text, digest_size=6).digest())


def encode_cursor(*place: int, as_of: str | None = None) -> str:
    """Return an opaque text for the key of an item.

    It includes the event id of the list if it has one.
    """
    parts = place if as_of is None else (*place, as_of)
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def decode_cursor(cursor: str, size: int) -> list[int]:
    """Return the parts of a cursor.

    Raises BadRequest for a text that no list has issued.
    """
    return _integers(_decoded(cursor), size)


def decode_cursor_as_of(cursor: str, size: int) -> tuple[list[int], str]:
    """Return the integers of a cursor and the event id after them.

    Raises BadRequest for a text that no list has issued.
    """
    parts = _decoded(cursor)
    as_of = parts.pop() if isinstance(parts, list) and parts else None
    if not isinstance(as_of, str) or not is_id(as_of, "evt"):
        raise _not_given()
    return _integers(parts, size), as_of


def _decoded(cursor: str) -> Any:
    try:
        return orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error):
        return None


def _integers(parts: Any, size: int) -> list[int]:
    if (
        not isinstance(parts, list)
        or len(parts) != size
        or not all(type(part) is int and abs(part) < 1 << 63 for part in parts)
    ):
        raise _not_given()
    return parts


def _not_given() -> BadRequest:
    return bad_cursor("This is not a cursor that this list has given.")


def bad_cursor(message: str) -> BadRequest:
    """Return the refusal of a cursor."""
    return bad_query(Problem("?cursor", "bad_cursor", message))
