"""Reports as the API shows them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.http.schemas.base import Count, Moment, Shape

Seconds = Annotated[float | None, Field(ge=0, examples=[93.5])]
Key = Annotated[
    str | None,
    Field(
        description="The id of the agent or team, the tag, or the day; null for what belongs to nobody.",
        examples=["usr_01KZ0000000000000000AGENT1"],
    ),
]
RowName = Annotated[
    str | None,
    Field(
        description="The name as it is now; null if the account or the team was deleted.",
        examples=["Ada Lovelace"],
    ),
]
Grouped = Annotated[str | None, Field(description="What the rows are about.", examples=["agent"])]
Omitted = Annotated[
    int, Field(ge=0, description="Groups that have no row: there are at most 1,000.", examples=[0])
]


class Spread(Shape):
    """The figures of some durations, in seconds; null if there are none. Percentiles are nearest ranks."""

    mean: Seconds
    median: Seconds
    p90: Seconds
    min: Seconds
    max: Seconds


class DurationFigures(Spread):
    """The number of durations, and their figures in seconds."""

    count: Count


class DurationRow(DurationFigures):
    """A group of a report on durations."""

    key: Key
    name: RowName


class CsatFigures(Shape):
    """The ratings. `scores` says how often each rating from 0 to 10 was given, `csat` is the percentage of 7 to 10."""

    count: Count
    average: Annotated[float | None, Field(ge=0, le=10, examples=[8.25])]
    csat: Annotated[float | None, Field(ge=0, le=100, examples=[87.5])]
    scores: Annotated[
        list[Count], Field(min_length=11, max_length=11, examples=[[0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 1]])
    ]


class CsatRow(CsatFigures):
    """A group of a report on ratings."""

    key: Key
    name: RowName


class VolumeFigures(Shape):
    """The numbers of what happened. `messages` is the sum of those of all authors; notes are left out."""

    conversations_created: Count
    conversations_closed: Count
    conversations_reopened: Count
    contact_messages: Count
    agent_messages: Count
    bot_messages: Count
    system_messages: Count
    messages: Count


class VolumeRow(VolumeFigures):
    """A group of a report on volume."""

    key: Key
    name: RowName


class BacklogFigures(Shape):
    """The open conversations: how many, of how many the contact waits for an answer, and how old they are, in seconds.

    Of the end of a day in the past only the first is known.
    """

    open: Count
    waiting: Annotated[int | None, Field(ge=0, examples=[1])]
    age: Spread | None


class BacklogRow(BacklogFigures):
    """A group of a report on the backlog."""

    key: Key
    name: RowName


class _Report(Shape):
    by: Grouped
    imported: Annotated[bool, Field(description="Whether imported conversations count.")]
    computed_at: Annotated[Moment, Field(description="When the report was computed.")]
    omitted: Omitted


class _OfPeriod(_Report):
    from_: Annotated[Moment, Field(alias="from")]
    to: Moment
    timezone: Annotated[str, Field(examples=["Europe/Berlin"])]


class DurationReport(_OfPeriod):
    """The durations of what happened from `from` up to but without `to`. There are rows if `by` names groups, the largest first."""

    total: DurationFigures
    rows: list[DurationRow]


class CsatReport(_OfPeriod):
    """The ratings that were given from `from` up to but without `to`."""

    total: CsatFigures
    rows: list[CsatRow]


class VolumeReport(_OfPeriod):
    """The numbers of what happened from `from` up to but without `to`."""

    total: VolumeFigures
    rows: list[VolumeRow]


class BacklogReport(_Report):
    """The conversations that are open now, and with `by=day` how many were open at the end of each day.

    Only those days have a period; otherwise `from`, `to` and `timezone` are null.
    """

    from_: Annotated[Moment | None, Field(alias="from")]
    to: Moment | None
    timezone: Annotated[str | None, Field(examples=["Europe/Berlin"])]
    total: BacklogFigures
    rows: list[BacklogRow]
