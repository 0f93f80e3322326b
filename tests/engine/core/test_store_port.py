"""A domain's store runs only its own queries, which a type checker verifies (ADR 1)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

PLANTED = """
from deskwire.engine.accounts.ports import AccountReader, AccountTransaction, CallerCommit
from deskwire.engine.contacts.ports import ContactReader, ContactTransaction
from deskwire.engine.conversations.ports import ConversationReader, ConversationTransaction
from deskwire.engine.core.commits import Commits, Subscribers
from deskwire.engine.core.store import InlineJob, InlineQuery, Store
from deskwire.engine.webhooks.ports import DeliveryCommit, DeliveryReader, DeliveryTransaction
from deskwire.engine.events.ports import EventReader, EventTransaction, LogCommit
from deskwire.engine.accounts.ports import OrganisationReader, OrganisationTransaction
from deskwire.engine.ports import Commit
from deskwire.engine.stream.ports import StreamReader, StreamTransaction
from deskwire.engine.surveys.ports import SurveyReader, SurveyTransaction
from deskwire.engine.tickets.ports import TicketReader, TicketTransaction
from deskwire.engine.uploads.ports import EraseCommit, UploadReader, UploadTransaction
from deskwire.engine.workflows.ports import WorkflowReader, WorkflowTransaction
from deskwire.storage.sqlite.store import SqliteStore

Tickets = Store[TicketReader, TicketTransaction]


def wired(real: SqliteStore, commits: Subscribers[Commit]) -> None:
    accounts: Store[AccountReader, AccountTransaction] = real
    organisations: Store[OrganisationReader, OrganisationTransaction] = real
    contacts: Store[ContactReader, ContactTransaction] = real
    events: Store[EventReader, EventTransaction] = real
    workflows: Store[WorkflowReader, WorkflowTransaction] = real
    uploads: Store[UploadReader, UploadTransaction] = real
    deliveries: Store[DeliveryReader, DeliveryTransaction] = real
    stream: Store[StreamReader, StreamTransaction] = real
    surveys: Store[SurveyReader, SurveyTransaction] = real
    conversations: Store[ConversationReader, ConversationTransaction] = real
    tickets: Tickets = real
    log: Commits[LogCommit] = commits
    delivered: Commits[DeliveryCommit] = commits
    erased: Commits[EraseCommit] = commits
    callers: Commits[CallerCommit] = commits


async def used(store: Tickets, other: Store[SurveyReader, SurveyTransaction]) -> None:
    await store.read(lambda reader: reader.ticket(1, "tkt_1"))
    await store.read(InlineQuery(lambda reader: reader.ticket(1, "tkt_1")))
    await store.write(lambda tx: tx.touch_ticket("tkt_1", 1))
    await store.write(InlineJob(lambda tx: tx.touch_ticket("tkt_1", 1)))
    await store.read(lambda reader: reader.survey(1, "srv_1"))  # refused
    await store.read(InlineQuery(lambda reader: reader.survey(1, "srv_1")))  # refused
    await store.read(lambda reader: reader.touch_ticket("tkt_1", 1))  # refused
    await store.write(lambda tx: tx.clear_survey(1, 1))  # refused
    await store.write(InlineJob(lambda tx: tx.clear_survey(1, 1)))  # refused
    store.submit(lambda tx: tx.clear_survey(1, 1), print)  # refused
    await used(other, other)  # refused


def followed(commits: Commits[LogCommit]) -> None:
    commits.subscribe(lambda commit: print(commit.events, commit.erased))
    commits.subscribe(lambda commit: print(commit.callers))  # refused
"""


def test_real_store_satisfies_each_domains_port_and_mypy_refuses_foreign_parts(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(PLANTED)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", str(planted)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line for line in answer.stdout.splitlines() if ": error: " in line]
    # By its name alone: mypy's cache of the same text names the folder of an earlier run.
    refused = {int(line.split(":")[1]) for line in errors if Path(line.split(":")[0]).name == planted.name}
    marked = {number for number, line in enumerate(PLANTED.splitlines(), 1) if "# refused" in line}
    assert refused == marked, answer.stdout + answer.stderr
    assert len({line.partition(":")[0] for line in errors}) == 1, answer.stdout
