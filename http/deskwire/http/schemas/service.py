"""Problem documents, and what the service says of itself."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from deskwire.engine.core.errors import PROBLEMS_MAX
from deskwire.http.schemas.base import Shape


class InputProblem(Shape):
    """One thing that is wrong with an input."""

    pointer: Annotated[
        str,
        Field(description="A JSON pointer into the body, or `?name` for a parameter.", examples=["/title"]),
    ]
    code: Annotated[str, Field(examples=["too_long"])]
    message: Annotated[str, Field(examples=["String should have at most 500 characters"])]


class ProblemDocument(Shape):
    """A refusal (RFC 9457). `code` is stable; `detail` is for people."""

    type: Annotated[str, Field(examples=["about:blank"])]
    title: Annotated[str, Field(examples=["Not Found"])]
    status: Annotated[int, Field(ge=400, le=599, examples=[404])]
    detail: Annotated[str, Field(examples=["There is no such conversation."])]
    code: Annotated[str, Field(examples=["conversation_not_found"])]
    request_id: Annotated[str, Field(examples=["req_01KZ000000000000000000REQ1"])]
    errors: (
        Annotated[
            list[InputProblem],
            Field(
                description=f"The problems found with the input, {PROBLEMS_MAX} at most.",
                max_length=PROBLEMS_MAX,
            ),
        ]
        | None
    ) = None
    errors_total: (
        Annotated[
            int, Field(ge=1, description="How many there are; it stands beside `errors`.", examples=[1])
        ]
        | None
    ) = None


class Health(Shape):
    """The process answers."""

    status: Literal["ok"]


class Readiness(Shape):
    """The service takes requests."""

    status: Literal["ready"]


class About(Shape):
    """What this is."""

    service: Literal["deskwire"]
    version: Annotated[str, Field(examples=["0.1.0"])]
    api: Annotated[str, Field(examples=["/v3"])]
