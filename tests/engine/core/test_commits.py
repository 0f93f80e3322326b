"""Subscribers to commits, and the order in which they are notified."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from deskwire.engine.core.commits import Subscribers
from deskwire.engine.ports import Commit
from deskwire.storage.sqlite.store import open_store
from tests.support.builders import found_projects
from tests.support.deadlines import HANG_TIMEOUT_S


def test_subscribers_are_notified_of_each_commit_in_subscription_order() -> None:
    told: list[tuple[str, int]] = []
    commits = Subscribers[int]()
    for name in ("log", "deliveries", "keys"):
        commits.subscribe(lambda commit, name=name: told.append((name, commit)))  # type: ignore[misc]
    commits.tell(1)
    commits.tell(2)
    assert told == [(name, commit) for commit in (1, 2) for name in ("log", "deliveries", "keys")]


def test_later_subscriber_is_notified_of_later_commits_only() -> None:
    told: list[int] = []
    commits = Subscribers[int]()
    commits.tell(1)
    commits.subscribe(told.append)
    commits.tell(2)
    assert told == [2]


def test_subscriber_is_notified_only_of_commits_with_its_fields() -> None:
    told: list[tuple[str, Commit]] = []
    commits = Subscribers[Commit]()
    commits.subscribe(lambda commit: told.append(("keys", commit)), "callers")
    commits.subscribe(lambda commit: told.append(("log", commit)), "events", "erased")
    commits.subscribe(lambda commit: told.append(("all", commit)))
    nothing = Commit((), (), frozenset())
    key, erasure = Commit((), (), frozenset(), callers=True), Commit((), (), frozenset({1}))
    for commit in (nothing, key, erasure):
        commits.tell(commit)
    assert told == [("all", nothing), ("keys", key), ("all", key), ("log", erasure), ("all", erasure)]


async def test_subscribers_are_notified_before_any_job_of_the_commit_is_answered(tmp_path: Path) -> None:
    told: list[str] = []
    commits = Subscribers[Commit]()
    commits.subscribe(lambda commit: told.append("first"))
    commits.subscribe(lambda commit: told.append("second"))
    async with open_store(tmp_path, batch=2, readers=1, on_commit=commits.tell) as store:
        store.submit(lambda tx: None, lambda _: told.append("answer"))
        await store.write(found_projects)
    assert told == ["first", "second", "answer"]


async def test_failing_subscriber_ends_the_writer_and_no_job_reports_success(tmp_path: Path) -> None:
    told: list[Commit] = []

    def fail(_: Commit) -> None:
        raise ZeroDivisionError

    commits = Subscribers[Commit]()
    commits.subscribe(told.append)
    commits.subscribe(fail)
    commits.subscribe(told.append)
    with pytest.RaisesGroup(ZeroDivisionError, allow_unwrapped=True, flatten_subgroups=True):
        async with open_store(tmp_path, batch=1, readers=1, on_commit=commits.tell) as store:
            with trio.fail_after(HANG_TIMEOUT_S):
                await store.write(found_projects)
    assert len(told) == 1
