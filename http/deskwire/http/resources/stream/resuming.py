"""Parts that the streams of server-sent events share: the event after which one continues, and headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from deskwire.engine.core.errors import Problem
from deskwire.engine.core.ids import is_id
from deskwire.http.api.calls import Call
from deskwire.http.api.input.validation import Body, Query, bad_query

NOT_BUFFERED: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_EVENT_ID: Final[dict[str, Any]] = {"pattern": "^evt_[0-7][0-9A-HJKMNP-TV-Z]{25}$"}


class AfterQuery(Query):
    """The event after which to continue."""

    after: str | None = Field(None, json_schema_extra=_EVENT_ID)

    @classmethod
    def further(cls, given: Mapping[str, str]) -> None:
        """Check the ids. Raises BadRequest."""
        if problems := cls.problems(given):
            raise bad_query(*problems)

    @classmethod
    def problems(cls, given: Mapping[str, str]) -> list[Problem]:
        """Return the problems of the ids."""
        if "after" not in given or is_id(given["after"], "evt"):
            return []
        return [Problem("?after", "bad_event_id", "An event id is evt_ and 26 characters.")]


def resumed_after(call: Call[Body, Any]) -> str | None:
    """Return the event after which a stream continues; the header `Last-Event-ID` overrides the parameter.

    Raises BadRequest.
    """
    query, resumed = call.query, call.incoming.headers.get("last-event-id")
    query.further(query.model_dump(exclude_none=True))
    if resumed:
        query.further({"after": resumed})
    after: str | None = resumed or query.after
    return after
