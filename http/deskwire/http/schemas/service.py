"""Problem documents, and the health and version of the service."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from deskwire.engine.core.errors import PROBLEMS_MAX
from deskwire.http.schemas.base import Shape


class InputProblem(Shape):
    """A problem with the input."""

    in_: Annotated[
        Literal["body", "query", "header"],
        Field(alias="in", description="The part of the request that `pointer` is about.", examples=["body"]),
    ]
    pointer: Annotated[
        str,
        Field(
            description="A JSON pointer (RFC 6901) into the body; of a query parameter or header `/` and its name.",
            examples=["/title"],
        ),
    ]
    code: Annotated[str, Field(examples=["too_long"])]
    message: Annotated[str, Field(examples=["This must have at most 500 characters."])]


class ProblemDocument(Shape):
    """An error (RFC 9457). `code` is stable, so act on it; `detail` is for people and may change."""

    type: Annotated[
        str,
        Field(
            description="Where the code is explained, relative to the URL of the request.",
            examples=["/docs/errors#conversation_not_found"],
            json_schema_extra={"format": "uri-reference"},
        ),
    ]
    title: Annotated[str, Field(examples=["Not Found"])]
    status: Annotated[int, Field(ge=400, le=599, examples=[404])]
    detail: Annotated[str, Field(examples=["There is no such conversation."])]
    code: Annotated[str, Field(examples=["conversation_not_found"])]
    request_id: Annotated[str, Field(examples=["req_01KZ000000000000000000REQ1"])]
    errors: (
        Annotated[
            list[InputProblem],
            Field(
                description=f"The problems with the input, at most {PROBLEMS_MAX} of them.",
                max_length=PROBLEMS_MAX,
            ),
        ]
        | None
    ) = None
    errors_total: (
        Annotated[
            int,
            Field(
                ge=1,
                description="The number of problems found, of which `errors` may have only the first.",
                examples=[1],
            ),
        ]
        | None
    ) = None


class Health(Shape):
    """The process is alive, and which build it is. The commit is `unknown` in a build of sources without their history."""

    status: Literal["ok"]
    version: Annotated[str, Field(examples=["0.1.0"])]
    commit: Annotated[str, Field(examples=["8f2d5f0c8e5f4b7a9f0d6a1c3e2b4d5f6a7b8c9d"])]


class Readiness(Shape):
    """The service is ready for requests."""

    status: Literal["ready"]
    notices: (
        Annotated[
            list[str],
            Field(
                description="Faults for the operator that leave the service ready, such as signing secrets that can't be opened. "
                "Left out if there are none.",
                max_length=10,
            ),
        ]
        | None
    ) = None


class About(Shape):
    """The name and version of the service, and the path of its API."""

    service: Literal["deskwire"]
    version: Annotated[str, Field(examples=["0.1.0"])]
    api: Annotated[str, Field(examples=["/v3"])]
