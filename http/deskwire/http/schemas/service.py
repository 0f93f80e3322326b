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
        Field(
            alias="in", description="The part of the request to which `pointer` refers.", examples=["body"]
        ),
    ]
    pointer: Annotated[
        str,
        Field(
            description="A JSON pointer (RFC 6901) into the body; `/` and the name for a query parameter or header.",
            examples=["/title"],
        ),
    ]
    code: Annotated[str, Field(examples=["too_long"])]
    message: Annotated[str, Field(examples=["This must have at most 500 characters."])]


class ProblemDocument(Shape):
    """An error (RFC 9457). `code` is stable and for programs; `detail` is for people and may change."""

    type: Annotated[
        str,
        Field(
            description="The explanation of the code, relative to the URL of the request.",
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
                description="The number of problems, of which `errors` may have only the first ones.",
                examples=[1],
            ),
        ]
        | None
    ) = None


class Health(Shape):
    """The process is alive, with its build. The commit is `unknown` in a build from sources without history."""

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
                description="Faults for the operator that don't affect readiness, such as signing secrets that can't be decrypted. "
                "Omitted if there are none.",
                max_length=10,
            ),
        ]
        | None
    ) = None


class ServiceInfo(Shape):
    """The name and version of the service, and the path of its API."""

    service: Literal["deskwire"]
    version: Annotated[str, Field(examples=["0.1.0"])]
    api: Annotated[str, Field(examples=["/v3"])]
