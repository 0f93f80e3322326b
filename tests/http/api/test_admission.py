"""A call is refused at once when all places of its kind are taken; a finished call releases its place."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from math import inf

import pytest
import trio

from deskwire.engine.cluster.cluster import SingleNode
from deskwire.engine.core.errors import TooManyRequests, Unavailable
from deskwire.http.api.admission import IMPORTS_MAX, Admission


def test_concurrent_imports_are_limited() -> None:
    load = Admission(requests_max=9, waits_max=9, bodies_bytes_max=9, writes_max=9, writes=())
    begun = [load.importing(project) for project in range(IMPORTS_MAX)]
    for each in begun:
        each.__enter__()
    with pytest.raises(Unavailable) as refused, load.importing("another"):
        pass
    assert (refused.value.reason, refused.value.retry_after_s) == ("overloaded", 1)
    assert (load.imports, load.refused["imports"]) == (IMPORTS_MAX, 1)
    begun[0].__exit__(None, None, None)
    with load.importing("another"):
        assert load.imports == IMPORTS_MAX
    begun[1].__exit__(None, None, None)
    assert load.imports == 0


def test_no_project_uses_up_a_limit_alone() -> None:
    load = Admission(requests_max=10, waits_max=10, bodies_bytes_max=10, writes_max=9, writes=())
    with ExitStack() as kept:

        def wait(who: str) -> None:
            kept.enter_context(load.waiting(who))

        for take in (load.begin, partial(load.reserve_body, size=1, anonymous=False), wait):
            for _ in range(5):
                take("greedy")
                if take is wait:
                    load.begin("greedy")  # waiting takes no place of those that work
            with pytest.raises(TooManyRequests) as refused:
                take("greedy")
            assert (refused.value.reason, refused.value.retry_after_s) == ("too_many_at_once", 1)
            take("modest")
        assert (load.crowded, sum(load.refused.values())) == (3, 0)


def test_anonymous_callers_get_a_part_of_the_memory_for_bodies() -> None:
    load = Admission(requests_max=9, waits_max=9, bodies_bytes_max=80, writes_max=9, writes=())
    load.reserve_body("one address", 10, anonymous=True)
    with pytest.raises(TooManyRequests):
        load.reserve_body("one address", 1, anonymous=True)
    load.reserve_body("another", 5, anonymous=True)
    load.reserve_body("a third", 2, anonymous=True)
    for address in range(3):
        load.reserve_body(address, 1, anonymous=True)
    with pytest.raises(Unavailable) as refused:
        load.reserve_body("late", 1, anonymous=True)
    assert (refused.value.reason, load.refused["bodies"]) == ("overloaded", 1)
    assert load.bodies_bytes == 20  # a quarter
    load.reserve_body("project", 30, anonymous=False)
    load.release_body("project", 30, anonymous=False)
    load.release_body("one address", 10, anonymous=True)
    load.reserve_body("late", 1, anonymous=True)


async def test_node_without_a_lease_refuses_requests_until_its_next_heartbeat() -> None:
    cluster = SingleNode()
    load = Admission(
        requests_max=9, waits_max=9, bodies_bytes_max=9, writes_max=9, writes=(), cluster=cluster
    )
    load.check()
    for over in (-inf, trio.current_time() - 0.001):
        cluster.valid_until = over
        with pytest.raises(Unavailable) as refusal:
            load.check()
        assert refusal.value.reason == "out_of_touch"
    cluster.valid_until = trio.current_time() + 5
    load.check()
