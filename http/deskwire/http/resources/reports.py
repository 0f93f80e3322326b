"""Reports on the support team's work, as JSON and as CSV (ADR 74)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from deskwire.engine.audit.audited_changes import report_exported
from deskwire.engine.conversations.tags import tag_key
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Problem
from deskwire.engine.reports.period import Period, day_name
from deskwire.engine.reports.ports import GroupBy, ReportReader, ReportScope
from deskwire.engine.reports.report import Metric, Report, compute, csv_of
from deskwire.http.api.audit_records import record_export
from deskwire.http.api.calls import Answer, BytesAnswer, Call
from deskwire.http.api.input.periods import PeriodQuery
from deskwire.http.api.input.validation import Body, Flag, bad_query
from deskwire.http.api.routing import Media, Routes, Tag, either
from deskwire.http.resources.conversations.filter_values import Channels, Tags
from deskwire.http.schemas import reports as shapes

routes = Routes(
    Tag(
        "Reports",
        "Report on the support team's work: first response, time to close, CSAT, volume and backlog.",
    ),
    access=either("conversations.read"),
)
_CHANNEL: Final = (
    "The id of a channel, `none` for conversations that did not begin in one, or several of these separated by commas: only "
    "their conversations count."
)
_TAG: Final = "A tag, or several separated by commas: only conversations count that have one of them now."
_CSV: Final = Media("text/csv", sized=True)
_RECORDED: Final = ("report.exported",)


class ReportQuery(PeriodQuery):
    """The period of a report, its groups, and the conversations that count."""

    by: Annotated[GroupBy | None, Field(description="The groups, with a row for each.")] = None
    imported: Annotated[Flag, Field(description="Whether imported conversations count.")] = True
    channel: Annotated[Channels | None, Field(description=_CHANNEL)] = None
    tag: Annotated[Tags | None, Field(description=_TAG)] = None

    def scope(self, project: int, period: Period) -> ReportScope:
        """Return the scope of the report."""
        channels = (
            None if self.channel is None else tuple(None if each == "none" else each for each in self.channel)
        )
        tags = None if self.tag is None else tuple(dict.fromkeys(map(tag_key, self.tag)))
        return ReportScope(project, period, self.imported, channels, tags)


class BacklogQuery(ReportQuery):
    """The groups of a backlog; a period is used only for its days."""

    def period(self, now: int) -> Period:
        """Return the period of the days. Raises BadRequest for a period without days."""
        period = super().period(now)
        if self.by != "day":
            message = "The past backlog is known only by days: omit this, or give by=day."
            named = {"from": self.start, "to": self.end}
            unused = [
                Problem(f"?{name}", "not_allowed", message)
                for name, text in named.items()
                if text is not None
            ]
            if unused:
                raise bad_query(*unused)
        return period


async def _report(call: Call[Body, Any], metric: Metric) -> tuple[Report, Period, int]:
    now = call.services.clock()
    period = call.query.period(now)
    scope = call.query.scope(call.project.rowid, period)

    def ask(reader: ReportReader) -> Report:
        return compute(reader, metric, scope, call.query.by, now)

    return await call.services.store.read(ask), period, now


async def _json(call: Call[Body, Any], metric: Metric) -> Answer:
    report, period, now = await _report(call, metric)
    dated = metric != "backlog" or call.query.by == "day"
    return {
        "from": iso(period.start) if dated else None,
        "to": iso(period.end) if dated else None,
        "timezone": period.timezone if dated else None,
        "by": call.query.by,
        "imported": call.query.imported,
        "channel": call.query.channel,
        "tag": call.query.tag,
        "computedAt": iso(now),
        "total": report.total,
        "rows": [{"key": row.key, "name": row.name, **row.figures} for row in report.rows],
        "omitted": report.omitted,
    }


async def _csv(call: Call[Body, Any], metric: Metric) -> Answer:
    report, period, _ = await _report(call, metric)
    await record_export(call, report_exported(call.project, metric))
    days = [*period.days()]
    named = [metric, *([day_name(days[0]), day_name(days[-1])] if days else [])]
    disposition = {"Content-Disposition": f'attachment; filename="{"_".join(named)}.csv"'}
    return BytesAnswer(csv_of(report, call.query.by).encode(), "text/csv; charset=utf-8", disposition)


@routes.add(
    "GET",
    "/reports/first-response",
    operation_id="reportFirstResponse",
    query=ReportQuery,
    answer=shapes.DurationReport,
)
async def first_response(call: Call[Body, ReportQuery]) -> Answer:
    """Report how long contacts waited for the first answer of an agent.

    The report counts each conversation in which an agent answered the contact for the first time within the period, from the
    contact's first message to that answer. It is attributed to the agent who answered. Bots do not count.
    """
    return await _json(call, "first-response")


@routes.add(
    "GET",
    "/reports/first-response.csv",
    operation_id="exportFirstResponse",
    query=ReportQuery,
    answer=_CSV,
    records=_RECORDED,
)
async def first_response_csv(call: Call[Body, ReportQuery]) -> Answer:
    """Report how long contacts waited for the first answer of an agent, as CSV.

    The file follows RFC 4180, in UTF-8 with a byte order mark: a line for each row of the report, or one for the total
    without `by`. A text that a spreadsheet would take for a formula is prefixed with `'`.
    """
    return await _csv(call, "first-response")


@routes.add(
    "GET",
    "/reports/time-to-close",
    operation_id="reportTimeToClose",
    query=ReportQuery,
    answer=shapes.DurationReport,
)
async def time_to_close(call: Call[Body, ReportQuery]) -> Answer:
    """Report how long conversations were open until they were closed.

    The report counts each closing within the period, from the conversation's creation or its last reopening. It is
    attributed to the agent of the conversation: its assignee, else its last writer.
    """
    return await _json(call, "time-to-close")


@routes.add(
    "GET",
    "/reports/time-to-close.csv",
    operation_id="exportTimeToClose",
    query=ReportQuery,
    answer=_CSV,
    records=_RECORDED,
)
async def time_to_close_csv(call: Call[Body, ReportQuery]) -> Answer:
    """Report how long conversations were open until they were closed, as CSV.

    The file follows RFC 4180, in UTF-8 with a byte order mark: a line for each row of the report, or one for the total
    without `by`. A text that a spreadsheet would take for a formula is prefixed with `'`.
    """
    return await _csv(call, "time-to-close")


@routes.add("GET", "/reports/csat", operation_id="reportCsat", query=ReportQuery, answer=shapes.CsatReport)
async def csat(call: Call[Body, ReportQuery]) -> Answer:
    """Report how contacts rated conversations.

    The report counts each rating given within the period that is still the conversation's. It is attributed to the agent
    of the conversation at that time.
    """
    return await _json(call, "csat")


@routes.add(
    "GET", "/reports/csat.csv", operation_id="exportCsat", query=ReportQuery, answer=_CSV, records=_RECORDED
)
async def csat_csv(call: Call[Body, ReportQuery]) -> Answer:
    """Report how contacts rated conversations, as CSV.

    The file follows RFC 4180, in UTF-8 with a byte order mark: a line for each row of the report, or one for the total
    without `by`. A text that a spreadsheet would take for a formula is prefixed with `'`.
    """
    return await _csv(call, "csat")


@routes.add(
    "GET", "/reports/volume", operation_id="reportVolume", query=ReportQuery, answer=shapes.VolumeReport
)
async def volume(call: Call[Body, ReportQuery]) -> Answer:
    """Report how many conversations were created, closed and reopened, and how many messages were written.

    Closings and reopenings are attributed to the conversation's agent at that time, created conversations to its
    current agent, and messages to their author.
    """
    return await _json(call, "volume")


@routes.add(
    "GET",
    "/reports/volume.csv",
    operation_id="exportVolume",
    query=ReportQuery,
    answer=_CSV,
    records=_RECORDED,
)
async def volume_csv(call: Call[Body, ReportQuery]) -> Answer:
    """Report how many conversations were created, closed and reopened, and how many messages were written, as CSV.

    The file follows RFC 4180, in UTF-8 with a byte order mark: a line for each row of the report, or one for the total
    without `by`. A text that a spreadsheet would take for a formula is prefixed with `'`.
    """
    return await _csv(call, "volume")


@routes.add(
    "GET", "/reports/backlog", operation_id="reportBacklog", query=BacklogQuery, answer=shapes.BacklogReport
)
async def backlog(call: Call[Body, BacklogQuery]) -> Answer:
    """Report how many conversations are open, and how old they are.

    With `by=day` the rows have the number of open conversations at the end of each day, and `from` and `to` are allowed. Otherwise the
    rows have the conversations that are open now, by agent or team.
    """
    return await _json(call, "backlog")


@routes.add(
    "GET",
    "/reports/backlog.csv",
    operation_id="exportBacklog",
    query=BacklogQuery,
    answer=_CSV,
    records=_RECORDED,
)
async def backlog_csv(call: Call[Body, BacklogQuery]) -> Answer:
    """Report how many conversations are open, and how old they are, as CSV.

    The file follows RFC 4180, in UTF-8 with a byte order mark: a line for each row of the report, or one for the total
    without `by`. A text that a spreadsheet would take for a formula is prefixed with `'`.
    """
    return await _csv(call, "backlog")
