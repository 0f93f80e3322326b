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
    """A line that was not imported, and the problems with it."""

    line: Annotated[
        int, Field(ge=1, description="The number of the line in this request, from 1.", examples=[17])
    ]
    external_id: Annotated[str, Field(examples=["zendesk-comment-2001"])] | None
    errors: Annotated[list[InputProblem], Field(max_length=PROBLEMS_MAX)]
    errors_total: Annotated[
        int,
        Field(
            ge=1,
            description="The number of problems found, of which `errors` may have only the first.",
            examples=[1],
        ),
    ]


class ImportDoubt(Shape):
    """A line that was imported though something in it can't be, such as a closing before the creation."""

    line: Annotated[
        int, Field(ge=1, description="The number of the line in this request, from 1.", examples=[17])
    ]
    external_id: Annotated[str, Field(examples=["zendesk-1001"])] | None
    errors: Annotated[list[InputProblem], Field(max_length=PROBLEMS_MAX)]
    errors_total: Annotated[int, Field(ge=1, description="The number of problems found.", examples=[1])]


class ImportReport(Shape):
    """The result of an import. The lines counted in `imported` and `existing` are on disk."""

    lines: Annotated[int, Field(ge=0, description="The number of lines that are not blank.", examples=[3])]
    imported: Annotated[ImportCounts, Field(description="The conversations and messages that are new.")]
    existing: Annotated[
        ImportCounts,
        Field(
            description="The conversations and messages that were imported before with the same content, and the deletions and "
            "redactions that have nothing left to change."
        ),
    ]
    deleted: Annotated[ImportCounts, Field(description="The deletions that were carried out.")]
    redacted: Annotated[
        Count, Field(description="The number of messages in which words were redacted as at their source.")
    ]
    refused: Count
    refusals: Annotated[
        list[ImportRefusal],
        Field(
            description="The refused lines in their order, limited to the first 1,000 of them and to 1 MiB."
        ),
    ]
    refusals_left_out: Annotated[
        Count, Field(description="The number of refused lines that are not in `refusals`.")
    ]
    doubtful: Annotated[
        Count,
        Field(
            description="The number of imported lines with a time that can't be. What depends on it counts as unknown in reports."
        ),
    ]
    doubts: Annotated[
        list[ImportDoubt],
        Field(description="These lines in their order, limited to the first 1,000 of them and to 1 MiB."),
    ]
    doubts_left_out: Annotated[
        Count, Field(description="The number of doubtful lines that are not in `doubts`.")
    ]
