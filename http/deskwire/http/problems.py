"""Refusals as problem documents (RFC 9457), from one table (decisions 1)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson

from deskwire.engine import errors
from deskwire.engine.errors import DomainError
from deskwire.http.headers import missing

PROBLEM: Final = "application/problem+json"

STATUS: Final[Mapping[type[DomainError], int]] = {
    errors.BadRequest: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Gone: 410,
    errors.AnswerErased: 410,
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
    """The document of a refusal and its headers; a subclass has the status of its base unless it has one of its own."""
    status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    headers = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.RangeNotSatisfiable):
        headers["Content-Range"] = f"bytes */{error.size}"
    document = problem(status, error.reason, error.detail, request_id)
    problems = error.problems if isinstance(error, errors.BadRequest | errors.Invalid) else ()
    if problems:
        document["errors"] = [
            {"pointer": each.pointer, "code": each.code, "message": each.message} for each in problems
        ]
    return document, headers


def problem(status: int, code: str, detail: str, request_id: str) -> dict[str, Any]:
    """A problem document."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "requestId": request_id,
    }


def raw_problem(
    status: int, code: str, detail: str, request_id: str
) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The headers and the body of a problem document, for what is answered without Quart."""
    body = orjson.dumps(problem(status, code, detail, request_id))
    headers = [
        (b"content-type", PROBLEM.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"x-request-id", request_id.encode()),
    ]
    return [*headers, *missing(headers)], body
