"""The period that a report or a figure covers, as query parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field

from deskwire.engine.reports.period import DAYS_DEFAULT, DAYS_MAX, Period, period_of
from deskwire.http.api.input.validation import Query, bad_query

_FROM: Final = (
    f"A day, such as 2026-11-01, or a time; by default so that the report has {DAYS_DEFAULT} days. A day begins at its first "
    "moment in the time zone."
)
_TO: Final = (
    f"The first day or time that no longer counts; by default now. A report covers at most {DAYS_MAX} days."
)


class PeriodQuery(Query):
    """The period of a report."""

    start: Annotated[str | None, Field(alias="from", description=_FROM, examples=["2026-11-01"])] = None
    end: Annotated[str | None, Field(alias="to", description=_TO, examples=["2026-12-01"])] = None
    timezone: Annotated[
        str,
        Field(description="The time zone of the days, from the IANA database.", examples=["Europe/Berlin"]),
    ] = "UTC"

    @classmethod
    def further(cls, given: Mapping[str, str]) -> None:
        """Check the period. Raises BadRequest."""
        _, problems = period_of(given, None)
        if problems:
            raise bad_query(*problems)

    def period(self, now: int) -> Period:
        """Return the period, which without `to` ends now (ms).

        Raises BadRequest naming every problem.
        """
        period, problems = period_of(self.given(), now)
        if period is None:
            raise bad_query(*problems)
        return period

    def given(self) -> dict[str, str]:
        """Return the parameters of the period as they were sent."""
        sent = {"from": self.start, "to": self.end, "timezone": self.timezone}
        return {name: text for name, text in sent.items() if text is not None}
