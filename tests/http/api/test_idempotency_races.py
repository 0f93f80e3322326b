"""A request that is sent again while the first one, whose caller has left, is on its way to the disk (ADR 24)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from deskwire.engine.core.errors import Conflict, DomainError, Forbidden, Gone, NotFound, Unavailable
from deskwire.engine.core.secret import Secrets
from deskwire.engine.idempotency.idempotent_requests import StoredResponses
from deskwire.http.api.calls import Call, Caller, ReplayedAnswer
from deskwire.http.api.idempotency import answered
from deskwire.http.api.routing import Route
from tests.support.builders import NOON, InlineStore


def a_call(store: InlineStore) -> Call[Any, Any]:
    """A request, as far as its handler looks at it here."""
    answers = StoredResponses(Secrets("secret"), lambda: NOON, 100)
    services = cast(Any, SimpleNamespace(answers=answers, store=store))
    return Call(services, Caller(credential="key 1"), {}, None, None, b"{}", cast(Any, None))


def a_route(handler: Any) -> Route:
    return cast(Route, SimpleNamespace(handler=handler, method="POST", path="/start", streamed=False))


@pytest.mark.parametrize("refusal", [Conflict, Gone, NotFound, Unavailable])
async def test_repetition_refused_before_its_commit_gets_the_stored_response(
    inline_store: InlineStore, refusal: type[DomainError]
) -> None:
    async def overtaken(call: Call[Any, Any]) -> Any:
        await call.commit(lambda _: {"id": "run_1"}, dict)  # the first one's
        raise refusal("It is refused for what the first one did, or for something else.")

    answer = await answered(a_route(overtaken), a_call(inline_store), "order-1")
    assert answer == ReplayedAnswer(b'{"id":"run_1"}')


async def test_caller_that_lost_the_right_does_not_get_the_stored_response(
    inline_store: InlineStore,
) -> None:
    call = a_call(inline_store)

    async def made(call: Call[Any, Any]) -> Any:
        return await call.commit(lambda _: {"id": "run_1"}, dict)

    async def forbidden(call: Call[Any, Any]) -> Any:
        await call.commit(lambda _: {"id": "run_1"}, dict)
        raise Forbidden("The credential may no longer do this.")

    with pytest.raises(Forbidden):
        await answered(a_route(forbidden), call, "order-1")
    assert await answered(a_route(made), call, "order-1") == ReplayedAnswer(b'{"id":"run_1"}'), "it is kept"


async def test_refusal_without_a_stored_response_is_returned(inline_store: InlineStore) -> None:
    async def refused(call: Call[Any, Any]) -> Any:
        raise Conflict("A workflow runs in the conversation already.", code="workflow_running")

    call = a_call(inline_store)
    with pytest.raises(Conflict) as refusal:
        await answered(a_route(refused), call, "order-1")
    assert refusal.value.reason == "workflow_running"
    assert call.services.answers.counters.replayed == 0


async def test_bug_in_a_repetition_is_not_hidden_by_the_stored_response(
    inline_store: InlineStore,
) -> None:
    async def broken(call: Call[Any, Any]) -> Any:
        await call.commit(lambda _: {"id": "run_1"}, dict)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await answered(a_route(broken), a_call(inline_store), "order-1")
