"""Reports in the API."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.http.schemas.base import Count, Moment, Shape

Seconds = Annotated[float | None, Field(ge=0, examples=[93.5])]
Key = Annotated[
    str | None,
    Field(
        description="The id of the agent, team or channel, the tag, or the day; null for values without one.",
        examples=["usr_01KZ0000000000000000AGENT1"],
    ),
]
RowName = Annotated[
    str | None,
    Field(
        description="The current name; null if the account, team or channel was deleted.",
        examples=["Ada Lovelace"],
    ),
]
Grouped = Annotated[str | None, Field(description="The kind of groups in the rows.", examples=["agent"])]
Omitted = Annotated[
    int,
    Field(
        ge=0, description="The number of groups without a row: at most 1,000 rows are shown.", examples=[0]
    ),
]


class DurationSpread(Shape):
    """Figures of durations in seconds; null without any. Percentiles are nearest ranks."""

    mean: Seconds
    median: Seconds
    p90: Seconds
    min: Seconds
    max: Seconds


class DurationFigures(DurationSpread):
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
    """Counts of events. `messages` is the sum for all authors, without notes."""

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
    """The open conversations: their number, the number of those whose contact waits for an answer, and their age in seconds.

    For the end of a past day, only the first is known.
    """

    open: Count
    waiting: Annotated[int | None, Field(ge=0, examples=[1])]
    age: DurationSpread | None


class BacklogRow(BacklogFigures):
    """A group of a report on the backlog."""

    key: Key
    name: RowName


class _Report(Shape):
    by: Grouped
    imported: Annotated[bool, Field(description="Whether imported conversations count.")]
    channel: Annotated[
        list[str] | None,
        Field(
            description="The channels whose conversations count, with `none`; null for all.", examples=[None]
        ),
    ]
    tag: Annotated[
        list[str] | None,
        Field(
            description="The tags one of which a counted conversation has; null for all.", examples=[["vip"]]
        ),
    ]
    computed_at: Annotated[Moment, Field(description="When the report was computed.")]
    omitted: Omitted


class _OfPeriod(_Report):
    from_: Annotated[Moment, Field(alias="from")]
    to: Moment
    timezone: Annotated[str, Field(examples=["Europe/Berlin"])]


class DurationReport(_OfPeriod):
    """The durations of events from `from` up to, but excluding, `to`. With `by` it has rows, the largest group first."""

    total: DurationFigures
    rows: list[DurationRow]


class CsatReport(_OfPeriod):
    """The ratings given from `from` up to, but excluding, `to`."""

    total: CsatFigures
    rows: list[CsatRow]


class VolumeReport(_OfPeriod):
    """The counts of events from `from` up to, but excluding, `to`."""

    total: VolumeFigures
    rows: list[VolumeRow]


class BacklogReport(_Report):
    """The conversations that are open now, and with `by=day` the number of open ones at the end of each day.

    Only days have a period; otherwise `from`, `to` and `timezone` are null.
    """

    from_: Annotated[Moment | None, Field(alias="from")]
    to: Moment | None
    timezone: Annotated[str | None, Field(examples=["Europe/Berlin"])]
    total: BacklogFigures
    rows: list[BacklogRow]
