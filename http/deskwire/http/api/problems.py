"""Refusals as problem documents (RFC 9457), from one table (decisions 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from deskwire.engine.core import errors
from deskwire.engine.core.errors import HEADER, PROBLEMS_MAX, DomainError, Problem
from deskwire.engine.core.http1 import phrase
from deskwire.http.api.input.validation_messages import pointer_token
from deskwire.http.api.output.responses import json_line, missing_headers

PROBLEM: Final = "application/problem+json"

_POINTER_MAX: Final = 200
_MESSAGE_MAX: Final = 500
# Limits in characters, because these texts may repeat names and values of the request, which can be far
# longer.
_DETAIL_MAX: Final = 1_000

STATUS: Final[Mapping[type[DomainError], int]] = {
    errors.BadRequest: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.PersonRequired: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Gone: 410,
    errors.AnswerErased: 410,
    errors.PreconditionFailed: 412,
    errors.TooLarge: 413,
    errors.UnsupportedMediaType: 415,
    errors.RangeNotSatisfiable: 416,
    errors.Invalid: 422,
    errors.IdempotencyMismatch: 422,
    errors.TooManyRequests: 429,
    errors.BadGateway: 502,
    errors.Unavailable: 503,
}


def refusal(error: DomainError, request_id: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the problem document of a refusal and its headers.

    A subclass inherits the status of its base.
    """
    status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    headers = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.RangeNotSatisfiable):
        headers["Content-Range"] = f"bytes */{error.size}"
    if isinstance(error, errors.PreconditionFailed) and error.tag is not None:
        headers["ETag"] = f'"{error.tag}"'
    document = problem(status, error.reason, error.detail, request_id)
    if isinstance(error, errors.BadRequest | errors.Invalid) and error.problems:
        document["errors"] = named(error.problems)
        document["errorsTotal"] = len(error.problems) + error.unnamed
    if isinstance(error, errors.Conflict | errors.Forbidden | errors.NotFound | errors.TooManyRequests):
        document |= error.shown
    return document, headers


def named(problems: Sequence[Problem]) -> list[dict[str, str]]:
    """Return the first problems as they are shown."""
    return [_named(each) for each in problems[:PROBLEMS_MAX]]


def _named(problem: Problem) -> dict[str, str]:
    part, pointer = _located(problem.pointer)
    return {
        "in": part,
        "pointer": cut(pointer, _POINTER_MAX),
        "code": problem.code,
        "message": cut(problem.message, _MESSAGE_MAX),
    }


def _located(pointer: str) -> tuple[str, str]:
    """Return the part of the request with a problem, and the JSON pointer in it.

    Sources: `Problem.pointer`, RFC 6901.
    """
    if pointer.startswith("?"):
        return "query", _of_name(pointer[1:])
    if pointer.startswith(HEADER):
        return "header", _of_name(pointer.removeprefix(HEADER))
    return "body", pointer


def _of_name(name: str) -> str:
    return f"/{pointer_token(name)}" if name else ""


def cut(text: str, most: int) -> str:
    """Return the text, shortened to `most` characters.

    An ellipsis marks the cut.
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def problem_type(code: str) -> str:
    """Return the type of a problem, the address of its explanation.

    It is relative to the request's URL (RFC 9457 3.1.1).
    """
    return f"/docs/errors#{code}"


def problem(status: int, code: str, detail: str, request_id: str) -> dict[str, Any]:
    """Return a problem document."""
    return {
        "type": problem_type(code),
        "title": phrase(status),
        "status": status,
        "detail": cut(detail, _DETAIL_MAX),
        "code": code,
        "requestId": request_id,
    }


def raw_problem(
    status: int, code: str, detail: str, request_id: str
) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return the headers and body of a problem document.

    It serves responses that Quart does not make.
    """
    body = json_line(problem(status, code, detail, request_id))
    headers = [
        (b"content-type", PROBLEM.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"x-request-id", request_id.encode()),
    ]
    return [*headers, *missing_headers(headers)], body
