"""`Idempotency-Key`: a repeated request gets the first response (ADR 24).

Source: decisions 1.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Any, Final

import orjson

from deskwire.engine.core import errors
from deskwire.engine.core.errors import (
    AlreadyAnswered,
    AnswerErased,
    BadRequest,
    DomainError,
    Forbidden,
    IdempotencyMismatch,
    Problem,
)
from deskwire.engine.core.store import InlineJob, InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.idempotency.idempotent_requests import IdempotentRequest
from deskwire.http.api.calls import Answer, Call, ReplayedAnswer
from deskwire.http.api.input.headers import Fields
from deskwire.http.api.routing import Route

HEADER: Final = "Idempotency-Key"
_FIELD: Final = HEADER.lower()
REPLAYED: Final = "Idempotent-Replayed"
_KEY: Final = re.compile(r"[\x20-\x7e]{1,255}")


def key_of(route: Route, headers: Fields) -> str | None:
    """Return the request's key.

    Returns None if it has none or the route takes none.

    Raises BadRequest (`bad_idempotency_key`).
    """
    given = headers.getlist(_FIELD) if route.idempotent else []
    if not given:
        return None
    if len(given) > 1 or not _KEY.fullmatch(given[0]):
        message = "An Idempotency-Key is given once, and has 1 to 255 printable ASCII characters."
        problem = Problem(f"{errors.HEADER}{HEADER}", "invalid", message)
        raise BadRequest(message, code="bad_idempotency_key", problems=(problem,))
    return given[0]


def answered(route: Route, call: Call[Any, Any], key: str | None) -> Awaitable[Answer]:
    """Return the handler's response, or the response stored under this key.

    Raises Conflict while the same request is under way, IdempotencyMismatch for another body, AnswerErased,
    and the handler's own errors.
    """
    return route.handler(call) if key is None else _answered_once(route, call, key)


async def _answered_once(route: Route, call: Call[Any, Any], key: str) -> Answer:
    """Return the handler's response, or the stored one, under a key.

    The handler's commit looks for a stored response. If the handler refuses the request before its commit, a
    stored response still takes precedence: the refusal may be a consequence of the first request's change
    (ADR 24).
    """
    answers = call.services.answers
    path = orjson.dumps(dict(call.path), option=orjson.OPT_SORT_KEYS).decode()
    place = next(iter(call.path.values()), "")
    with answers.in_flight(call.access.credential, route.method, route.path, path, key, place=place) as once:
        if not route.streamed:  # a streamed body is known at its end
            once = once.with_body(canonical(call.raw))
        try:
            try:
                answer = await route.handler(replace(call, once=once))
            except (AlreadyAnswered, AnswerErased, IdempotencyMismatch, Forbidden):
                raise  # a caller that has lost a right must not see the stored response
            except DomainError:
                if once.fingerprints:
                    await _check_stored(call, once)
                raise
        except AlreadyAnswered as found:
            answers.counters.replayed += 1
            return ReplayedAnswer(found.body)
        except IdempotencyMismatch:
            answers.counters.mismatch += 1
            raise
        except AnswerErased:
            answers.counters.erased += 1
            raise
    answers.counters.carried_out += 1
    return answer


async def _check_stored(call: Call[Any, Any], once: IdempotentRequest) -> None:
    """Look for a stored response. Raises as `IdempotentRequest.check`.

    With several nodes, the response found may belong to a commit that the database's standby does not have
    yet, and loses if it takes over. So the search is repeated in a commit, which waits for that one (ADR 60).
    """
    try:
        await call.services.store.read(InlineQuery(once.check))
    except AlreadyAnswered:
        if call.services.answers.several:
            await call.services.store.write(InlineJob(once.check))
        raise


def canonical(raw: bytes) -> bytes:
    """Return the JSON body in canonical form.

    The order of fields and white space do not make a different body.
    """
    try:
        return orjson.dumps(orjson.loads(raw or b"{}"), option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # nested too deeply for orjson; then the bytes are compared
        return raw
