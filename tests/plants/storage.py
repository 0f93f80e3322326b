"""Bugs of the database and the idempotency keys."""

from __future__ import annotations

from typing import Any

import trio

from deskwire.engine.core.values import replace
from deskwire.engine.idempotency.idempotent_requests import StoredResponses
from deskwire.storage import files
from deskwire.storage.sqlite import database, scrub, writer
from deskwire.storage.sqlite.log import LogWrites
from deskwire.storage.sqlite.writer import Writer
from tests.plants.registry import Patch, plant


@plant("simulation", "powerloss", thorough=("simulation",))
def answer_before_the_disk_has_it(patch: Patch) -> None:
    """`synchronous = NORMAL`: a commit is answered before it is synced."""
    pragmas = tuple(each.replace("synchronous = FULL", "synchronous = NORMAL") for each in database._PRAGMAS)
    patch.setattr(database, "_PRAGMAS", pragmas)


@plant("simulation", thorough=("simulation",))
def answer_a_failed_commit(patch: Patch) -> None:
    """A failed commit is answered as a success."""
    refuse = Writer._refuse

    def answering(self: Writer, batch: Any, error: Any) -> None:
        done = [job for job in batch if job.outcome is not None]  # their statements have run
        for job in done:
            job.ended(job.outcome)
        refuse(self, [job for job in batch if job not in done], error)

    patch.setattr(Writer, "_refuse", answering)


@plant("simulation", "crash", "model", thorough=("crash",))
def skip_a_sequence(patch: Patch) -> None:
    """Every thirtieth event with a sequence number gets a number that is one too high."""
    append = LogWrites.append_event
    count = [0]

    def skipping(self: Any, project: Any, draft: Any, *rest: Any, **named: Any) -> Any:
        if draft.sequence is not None:
            count[0] += 1
            draft = replace(draft, sequence=draft.sequence + (count[0] % 30 == 0))
        return append(self, project, draft, *rest, **named)

    patch.setattr(LogWrites, "append_event", skipping)


@plant("simulation")
def leave_erased_text(patch: Patch) -> None:
    """Erased data are not overwritten."""
    pragmas = tuple(each.replace("secure_delete = ON", "secure_delete = OFF") for each in database._PRAGMAS)
    patch.setattr(database, "_PRAGMAS", pragmas)
    patch.setattr(scrub, "scrubbed", lambda page, *_: page)


@plant("simulation", "nodes", "crash", thorough=("crash",))
def answer_a_key_twice(patch: Patch) -> None:
    """A key is checked only before the commit, so a concurrent request, or one after a crash, is carried out again."""
    patch.setattr(StoredResponses, "replay_or_refuse", lambda *_: None)


@plant("crash", "powerloss")
def answer_before_the_commit(patch: Patch) -> None:
    """Jobs are answered after their statements, twenty milliseconds before their COMMIT."""
    carry_out, end = writer._carry_out, Writer._end

    def answering(tx: Any, batch: Any) -> Any:
        spoiler = carry_out(tx, batch)
        if spoiler is None and all(job.inline for job in batch):
            for job in batch:
                job.ended(job.outcome)
                job.ended = lambda _: None
        return spoiler

    async def later(self: Writer, tx: Any, *, alone: bool) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(0.02)  # long enough for the answers to leave
        await end(self, tx, alone=alone)

    patch.setattr(writer, "_carry_out", answering)
    patch.setattr(Writer, "_end", later)


@plant("powerloss")
def keep_a_file_without_a_sync(patch: Patch) -> None:
    """The directory entry of an upload's file is not synced when the upload is answered."""
    patch.setattr(files, "sync", lambda _: None)


@plant("simulation")
def leave_kept_answers(patch: Patch) -> None:
    """Stored answers that show a redacted text are not erased."""
    patch.setattr(StoredResponses, "erase_mentions", lambda *_: None)
