"""The report of an import."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.engine.core.errors import PROBLEMS_MAX
from deskwire.http.schemas.base import Count, Shape
from deskwire.http.schemas.service import InputProblem


class ImportCounts(Shape):
    """The numbers of conversations and of messages."""

    conversations: Count
    messages: Count


class ImportRefusal(Shape):
    """A line that was not imported, with its problems."""

    line: Annotated[
        int, Field(ge=1, description="Line number in this request, starting at 1.", examples=[17])
    ]
    external_id: Annotated[str, Field(examples=["zendesk-comment-2001"])] | None
    errors: Annotated[list[InputProblem], Field(max_length=PROBLEMS_MAX)]
    errors_total: Annotated[
        int,
        Field(
            ge=1,
            description="The number of problems, of which `errors` may have only the first ones.",
            examples=[1],
        ),
    ]


class ImportDoubt(Shape):
    """A line that was imported despite an impossible value, such as a closing before the creation."""

    line: Annotated[
        int, Field(ge=1, description="Line number in this request, starting at 1.", examples=[17])
    ]
    external_id: Annotated[str, Field(examples=["zendesk-1001"])] | None
    errors: Annotated[list[InputProblem], Field(max_length=PROBLEMS_MAX)]
    errors_total: Annotated[int, Field(ge=1, description="The number of problems found.", examples=[1])]


class ImportReport(Shape):
    """The result of an import. The lines counted in `imported` and `existing` are on disk."""

    lines: Annotated[int, Field(ge=0, description="The number of lines that are not blank.", examples=[3])]
    imported: Annotated[ImportCounts, Field(description="The new conversations and messages.")]
    existing: Annotated[
        ImportCounts,
        Field(
            description="The conversations and messages imported before with the same content, and the deletions and "
            "redactions without any effect left."
        ),
    ]
    deleted: Annotated[ImportCounts, Field(description="The deletions carried out.")]
    redacted: Annotated[
        Count, Field(description="The number of messages redacted like in the original service.")
    ]
    refused: Count
    refusals: Annotated[
        list[ImportRefusal],
        Field(description="The refused lines in order, limited to the first 1,000 and to 1 MiB."),
    ]
    refusals_left_out: Annotated[
        Count, Field(description="The number of refused lines that are not in `refusals`.")
    ]
    doubtful: Annotated[
        Count,
        Field(
            description="The number of imported lines with an impossible time. Reports treat values that depend on it as unknown."
        ),
    ]
    doubts: Annotated[
        list[ImportDoubt],
        Field(description="These lines in order, limited to the first 1,000 and to 1 MiB."),
    ]
    doubts_left_out: Annotated[
        Count, Field(description="The number of doubtful lines that are not in `doubts`.")
    ]
