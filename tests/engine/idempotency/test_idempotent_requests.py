"""A request is executed once: its commit hook against a model, and its names.

Source: ADR 24.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deskwire.engine.core.errors import (
    AlreadyAnswered,
    AnswerErased,
    Conflict,
    DomainError,
    IdempotencyMismatch,
)
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import replace
from deskwire.engine.idempotency.idempotent_requests import (
    IdempotencyCounters,
    IdempotentRequest,
    StoredResponses,
)
from deskwire.engine.ports import Transaction
from deskwire.storage.sqlite.database import connect_writer, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.transaction import SqliteTransaction
from tests.support.builders import NOON, found_projects

WINDOW_S = 100
SECRET = "the installation's secret"


class Clock:
    """A clock that tests set."""

    now = NOON

    def __call__(self) -> int:
        return self.now


@dataclass
class Sent:
    """The model's record of an executed request."""

    body: bytes
    at: int
    ticket: str
    erased: bool = False


class World:
    """The real service and its model, side by side."""

    def __init__(self, tx: SqliteTransaction) -> None:
        self.tx = tx
        self.clock = Clock()
        self.model: dict[str, Sent] = {}
        self.made = 0
        self.secrets = Secrets(SECRET)
        self.restart()

    def restart(self) -> None:
        self.answers = StoredResponses(self.secrets, self.clock, WINDOW_S)

    def rotate(self) -> None:
        """Rotate the secret; the old secret's signatures are no longer valid."""
        self.secrets.become(self.secrets.rotated(f"another secret {self.made}", self.clock(), 0))

    def job(self, _: Transaction) -> dict[str, Any]:
        ticket = f"tkt_{self.made:026}"
        self.tx.conn.execute(
            "INSERT INTO tickets (id, project, title, status, priority, tags, created_at, updated_at, activity) "
            "VALUES (?, 1, 'T', 'OPEN', 1, '[]', 0, 0, 0)",
            (ticket,),
        )
        self.made += 1
        return {"id": ticket, "secret": "whsec_plain"}

    def send(self, key: str, body: bytes) -> str:
        """Send it to the service; return the ticket's id or the error code."""
        with self.answers.in_flight("key 1", "POST", key) as once:
            once = once.with_body(body)
            try:
                return str(once.around(self.job, dict)(self.tx)["id"])
            except AlreadyAnswered as found:
                return str(orjson.loads(found.body)["id"])
            except DomainError as refusal:
                return refusal.reason

    def expected(self, key: str, body: bytes) -> str:
        """Return the expected result."""
        sent = self.model.get(key)
        if sent is None or sent.at <= self.clock.now - WINDOW_S * 1000:
            self.model[key] = Sent(body, self.clock.now, f"tkt_{self.made:026}")
            return self.model[key].ticket
        if sent.body != body:
            return "idempotency_mismatch"
        return "idempotency_answer_erased" if sent.erased else sent.ticket

    def erase(self, key: str) -> None:
        """Delete the ticket that a request has created."""
        sent = self.model.get(key)
        if sent is not None:
            self.tx.conn.execute("DELETE FROM tickets WHERE id = ?", (sent.ticket,))
            sent.erased = True


@pytest.fixture(scope="module")
def transaction(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteTransaction]:
    """Open a writer's transaction on a database with the test's projects."""
    path: Path = tmp_path_factory.mktemp("once") / FILE_NAME
    migrate(path)
    with closing(connect_writer(path)) as connection:
        tx = SqliteTransaction(connection)
        found_projects(tx)
        yield tx


keys = st.sampled_from(["a", "b", "c"])
steps = st.one_of(
    st.tuples(st.just("send"), keys, st.sampled_from([b"1", b"2"])),
    st.tuples(st.just("send"), keys, st.just(b"1")),
    st.tuples(st.just("erase"), keys),
    st.tuples(st.just("wait"), st.integers(0, WINDOW_S * 1500)),
    st.tuples(st.just("restart")),
    st.tuples(st.just("rotate")),
    st.tuples(st.just("prune")),
)


@given(st.lists(steps, max_size=25))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_request_matches_the_model(
    transaction: SqliteTransaction, steps: list[tuple[Any, ...]]
) -> None:
    transaction.conn.execute("BEGIN")
    try:
        world = World(transaction)
        for step in steps:
            match step:
                case "send", key, body:
                    expected = world.expected(key, body)
                    assert world.send(key, body) == expected
                case "erase", key:
                    world.erase(key)
                case "wait", milliseconds:
                    world.clock.now += milliseconds
                case "restart":
                    world.restart()
                case "rotate":
                    world.rotate()
                case _:
                    transaction.prune_responses(world.clock.now - WINDOW_S * 1000 + 1, 1_000)
    finally:
        transaction.conn.execute("ROLLBACK")


def test_a_job_that_is_refused_leaves_its_key_free(transaction: SqliteTransaction) -> None:
    answers = StoredResponses(Secrets(SECRET), lambda: NOON, WINDOW_S)

    def refused(_: Transaction) -> dict[str, Any]:
        raise Conflict("No.", code="taken")

    with answers.in_flight("key 1", "k") as asked:
        once = asked.with_body(b"")
        with pytest.raises(Conflict):
            once.around(refused, dict)(transaction)
        once.check(transaction)


def test_only_the_same_request_is_refused_while_it_is_under_way() -> None:
    answers = StoredResponses(Secrets(SECRET), lambda: NOON, WINDOW_S)
    assert answers.counters == IdempotencyCounters(0, 0, 0, 0, 0)
    with answers.in_flight("key 1", "POST", "k"):
        with answers.in_flight("key 2", "POST", "k"):
            pass
        with pytest.raises(Conflict) as refusal, answers.in_flight("key 1", "POST", "k"):
            pass
        assert (refusal.value.reason, refusal.value.retry_after_s) == ("idempotency_in_progress", 1)
    with answers.in_flight("key 1", "POST", "k"):
        pass
    assert answers.counters == IdempotencyCounters(
        carried_out=0, replayed=0, in_progress=1, mismatch=0, erased=0
    )


@pytest.mark.parametrize(("waited_ms", "kept"), [(WINDOW_S * 1000 - 1, True), (WINDOW_S * 1000, False)])
def test_an_answer_is_kept_for_the_window_to_the_millisecond(
    transaction: SqliteTransaction, waited_ms: int, kept: bool
) -> None:
    answers = StoredResponses(Secrets(SECRET), lambda: NOON, WINDOW_S)
    with answers.in_flight("key 1", f"waited {waited_ms}") as asked:
        once = asked.with_body(b"")
        once.around(lambda _: {"id": "x"}, dict)(transaction)
    later = replace(once, at=NOON + waited_ms)
    if not kept:
        return later.check(transaction)
    with pytest.raises(AlreadyAnswered) as found:
        later.check(transaction)
    assert orjson.loads(found.value.body) == {"id": "x"}


def test_names_have_the_format_of_stored_ones() -> None:
    """Pin the format: another one would execute requests of the previous version again."""
    with StoredResponses(Secrets(SECRET), lambda: NOON, WINDOW_S).in_flight("key 1", "POST") as once:
        (name,) = once.names
    assert name.hex() == "d709d9a36dff93729d301008ec07aba29ba173af600723d0725d0b8ca69a4be3"


@given(st.lists(st.binary(max_size=4), max_size=4), st.lists(st.binary(max_size=4), max_size=4))
def test_only_the_same_parts_have_the_same_hash(some: list[bytes], others: list[bytes]) -> None:
    with StoredResponses(Secrets(SECRET), lambda: NOON, WINDOW_S).in_flight("key 1") as once:
        one, another = once.with_body(*some).fingerprints, once.with_body(*others).fingerprints
    assert (one == another) == (some == others)


def test_names_reveal_nothing_without_the_installations_secret() -> None:
    ours, theirs = (StoredResponses(Secrets(each), lambda: NOON, 1) for each in (SECRET, "another"))
    with ours.in_flight("u1") as our, theirs.in_flight("u1") as their:
        assert our.names != their.names
        assert our.with_body(b"").fingerprints != their.with_body(b"").fingerprints


def test_the_database_reveals_neither_key_nor_response(transaction: SqliteTransaction) -> None:
    answers = StoredResponses(Secrets(SECRET), lambda: NOON, WINDOW_S)
    with answers.in_flight("key 1", "my-secret-order") as once:
        once = once.with_body(b"")
        once.around(lambda _: {"id": "x", "secret": "whsec_plain"}, dict)(transaction)
    stored = str(transaction.stored_response(once.names[0], once.place)).encode()
    for plain in (b"my-secret-order", b"whsec_plain"):
        assert plain not in stored
    with pytest.raises(IdempotencyMismatch):
        once.with_body(b"other").check(transaction)
    transaction.conn.execute("UPDATE kept_answers SET sealed = NULL WHERE subject = 'x'")
    with pytest.raises(AnswerErased):
        once.check(transaction)


def test_rotation_during_a_request_keeps_the_second_one_out(
    transaction: SqliteTransaction,
) -> None:
    secrets = Secrets(SECRET)
    answers = StoredResponses(secrets, lambda: NOON, WINDOW_S)
    with answers.in_flight("key 1", "k") as once:
        secrets.become(secrets.rotated("another secret", NOON, 0))
        with pytest.raises(Conflict), answers.in_flight("key 1", "k"):
            pass
        once = once.with_body(b"")
        once.around(lambda _: {"id": "x"}, dict)(transaction)
    with answers.in_flight("key 1", "k") as again, pytest.raises(AlreadyAnswered):
        again.with_body(b"").check(transaction)


def keep(tx: SqliteTransaction, answers: StoredResponses, key: str, **answer: Any) -> IdempotentRequest:
    """Execute a request with a stored response; return the repeated request."""
    with answers.in_flight("key 1", key) as once:
        once = once.with_body(b"")
        once.around(lambda _: answer, dict)(tx)
    return once


def state(tx: SqliteTransaction, once: IdempotentRequest) -> str:
    """Return the response to a repeated request, or its error code."""
    try:
        once.check(tx)
    except AlreadyAnswered as found:
        return str(orjson.loads(found.body)["text"])
    except AnswerErased as refusal:
        return refusal.reason
    return "not carried out"


def test_only_stored_responses_that_name_a_redacted_message_are_erased(
    transaction: SqliteTransaction,
) -> None:
    answers = StoredResponses(Secrets(SECRET), lambda: NOON, WINDOW_S)
    subject, message = "cnv_redacted", "msg_redacted"
    naming = keep(transaction, answers, "a", id=subject, message={"id": message}, text="shown")
    itself = keep(transaction, answers, "b", id=subject, text=f"quotes {message}")
    sibling = keep(transaction, answers, "c", id=subject, message={"id": "msg_other"}, text="kept")
    stranger = keep(transaction, answers, "d", id="cnv_other", message={"id": message}, text="elsewhere")
    answers.erase_mentions(transaction, subject, message)
    assert state(transaction, naming) == state(transaction, itself) == "idempotency_answer_erased"
    assert (state(transaction, sibling), state(transaction, stranger)) == ("kept", "elsewhere")
    assert not transaction.conn.execute(
        "SELECT 1 FROM kept_answers WHERE subject = ? AND name = ? AND sealed IS NOT NULL",
        (subject, naming.names[0]),
    ).fetchall()


def test_an_unreadable_response_is_erased_with_any_mention(
    transaction: SqliteTransaction,
) -> None:
    subject = "cnv_restored"
    foreign = keep(
        transaction,
        StoredResponses(Secrets("of a backup"), lambda: NOON, WINDOW_S),
        "e",
        id=subject,
        text="?",
    )
    answers = StoredResponses(Secrets(SECRET), lambda: NOON, WINDOW_S)
    own = keep(transaction, answers, "f", id=subject, text="kept")
    answers.erase_mentions(transaction, subject, "msg_x")
    assert state(transaction, foreign) == "idempotency_answer_erased"
    assert state(transaction, own) == "kept"


def test_after_a_rotation_an_answer_is_kept_under_the_newest_secret(transaction: SqliteTransaction) -> None:
    secrets = Secrets(SECRET)
    answers = StoredResponses(secrets, lambda: NOON, WINDOW_S)
    secrets.become(secrets.rotated("the next secret", NOON, 0))
    once = keep(transaction, answers, "rotated", id="x", text="kept")
    newest, oldest = once.names[0], once.names[-1]
    assert newest != oldest
    assert transaction.stored_response(oldest, "") is None
    kept = transaction.stored_response(newest, "")
    assert kept is not None
    assert kept.fingerprint == once.fingerprints[0] != once.fingerprints[-1]


def test_a_request_is_not_looked_up_before_its_body_is_known(transaction: SqliteTransaction) -> None:
    answers = StoredResponses(Secrets(SECRET), lambda: NOON, WINDOW_S)
    with answers.in_flight("key 1", "k") as once, pytest.raises(ValueError, match="shorter"):
        once.check(transaction)


def test_store_belongs_to_one_node_unless_declared_otherwise() -> None:
    assert [
        StoredResponses(Secrets(SECRET), lambda: NOON, 1, **more).several for more in ({}, {"several": True})
    ] == [
        False,
        True,
    ]
