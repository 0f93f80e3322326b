"""What an import answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.engine.core.errors import PROBLEMS_MAX
from deskwire.http.schemas.base import Count, Shape
from deskwire.http.schemas.service import InputProblem


class ImportCounts(Shape):
    """How many conversations, and how many messages."""

    conversations: Count
    messages: Count


class ImportRefusal(Shape):
    """A line that was not taken in, and what is wrong with it."""

    line: Annotated[int, Field(ge=1, description="Its number in this request.", examples=[17])]
    external_id: Annotated[str, Field(examples=["zendesk-comment-2001"])] | None
    errors: Annotated[list[InputProblem], Field(max_length=PROBLEMS_MAX)]
    errors_total: Annotated[int, Field(ge=1, description="How many there are.", examples=[1])]


class ImportReport(Shape):
    """What came of all lines. What is in `imported` and `existing` is on disk."""

    lines: Annotated[int, Field(ge=0, description="Lines that are not blank.", examples=[3])]
    imported: Annotated[ImportCounts, Field(description="What is new.")]
    existing: Annotated[ImportCounts, Field(description="What was there already, just as it came.")]
    refused: Count
    refusals: Annotated[
        list[ImportRefusal],
        Field(description="The refused lines in their order, the first 1,000 of them, or 1 MiB."),
    ]
    refusals_left_out: Annotated[Count, Field(description="How many more there are, which are not named.")]
