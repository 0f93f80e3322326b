"""Power losses at any moment: everything that the process has acknowledged or sent by then survives its restart.

One run of the real service is recorded; then a possible state of the disk after a loss is built and checked for many
moments. `make powerloss CUTS=1000` or `python -m tests.crash.powerloss --cuts 1000 --seed 7`.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx
import trio

from deskwire.program.first_start import DEMO_FILE
from deskwire.program.secret_file import SecretError, present_secrets
from deskwire.storage.sqlite.check import check
from deskwire.storage.sqlite.directory import FILE_NAME, DataDirectoryError
from deskwire.storage.sqlite.store import open_store
from tests.crash.client import Client
from tests.crash.disk import ALL_SPARED, BYTES_SPARED, NAMES_SPARED, NOTHING_SPARED, Disk, Loss, torn
from tests.crash.ledger import Ledger
from tests.crash.shim import Op, Shim, missing
from tests.plants.plants import plants_for
from tests.plants.serving import serving
from tests.support.floors import Floor, judged, shortfalls
from tests.support.sockets.server_process import Server, free_port

CLIENTS: Final = 6
LOAD_S: Final = 1.2
PATIENCE_S: Final = 60.0
ANSWERS_MIN: Final = 40
"""The fewest answered requests of each half of a record that prove anything; two quiet cores give some hundreds."""
_UPLOADS: Final = 5
_SETTINGS: Final = {"DESKWIRE_RATE_LIMIT_PER_MINUTE": "0", "DESKWIRE_ARGON2_MEMORY_KIB": "8192"}
_FIXED: Final = (NOTHING_SPARED, ALL_SPARED, NAMES_SPARED, BYTES_SPARED)
_ID: Final = re.compile(rb'"id":"((?:msg|cnv|upl|whk)_[0-9A-Z]{26})"')
_PART: Final = re.compile(rb'"id":"(msg_[0-9A-Z]{26})","conversationId":"(cnv_[0-9A-Z]{26})"')
_STATE: Final = re.compile(rb'"id":"(cnv_[0-9A-Z]{26})","projectId":[^\n]*?"sequence":(\d+)')
_DELETED: Final = re.compile(rb'\{"id":"(cnv_[0-9A-Z]{26})","deleted":true\}')
_TABLES: Final = {"msg": "messages", "cnv": "conversations", "upl": "uploads", "whk": "endpoints"}


async def record(server: Server, seed: int, ledger: Ledger) -> set[str]:
    """Let the service carry out all kinds of requests, be killed in the middle, start again and stop.

    Returns the ids of the objects whose deletion was requested; `ledger` has its answers to all other requests.
    """
    chance, passing = random.Random(seed), set[str]()
    await server.start()
    try:
        await _load(server, f"power-{seed}-a", chance, passing, ledger)
        await server.kill()
        await server.start()
        await _load(server, f"power-{seed}-b", chance, passing, ledger)
    finally:
        await server.stop()
    return passing


async def _load(server: Server, name: str, chance: random.Random, passing: set[str], ledger: Ledger) -> None:
    """Let clients work for a while; on a busy machine, until enough requests are answered."""
    key, enough = str(server.demo()["serverKey"]), ledger.count("acknowledged") + ANSWERS_MIN
    async with trio.open_nursery() as nursery:
        for number in range(CLIENTS):
            mark, own = f"{name}-{number}", random.Random(chance.random())
            nursery.start_soon(Client(server.url, key, mark, own, ledger, lambda: False).run)
        nursery.start_soon(_files_and_removals, server.url, key, name, passing)
        await trio.sleep(LOAD_S)  # the load goes on
        with trio.move_on_after(PATIENCE_S):
            while ledger.count("acknowledged") < enough:  # noqa: ASYNC110
                await trio.sleep(LOAD_S / 10)  # poll: there is no notification
        nursery.cancel_scope.cancel()


async def _files_and_removals(url: str, key: str, name: str, passing: set[str]) -> None:
    """Upload files for messages, the same bytes twice, and create endpoints and conversations that are deleted."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=f"{url}/v3", headers=headers, timeout=30, trust_env=False) as http:
        await http.post("/s2s/webhooks", json={"url": f"http://127.0.0.1:{free_port()}/"})
        for number in range(_UPLOADS):
            content = f"{name} {number // 2} ".encode() * 3_000
            upload = await http.post("/uploads", files={"file": (f"{number}.txt", content)})
            message = {"text": name, "attachments": [upload.json()["id"]]}
            body = {"contact": {"userId": f"{name}-files"}, "message": message}
            made = await http.post("/s2s/conversations", json=body)
            if number % 2:
                passing |= {made.json()["id"], upload.json()["id"]}
                await http.delete(f"/s2s/conversations/{made.json()['id']}")


@dataclass(slots=True)
class Told:
    """A record of everything that the service has sent: ids of stored objects, and of deleted conversations.

    Args:
        sequences: the newest sequence of each conversation, by its id.
    """

    there: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    sequences: dict[str, int] = field(default_factory=dict)
    credentials: bool = False

    def hear(self, said: bytes, passing: set[str]) -> None:
        """Record sent bytes; objects that are `passing` need not survive, so they are left out."""
        ids = (each.decode() for each in _ID.findall(said))
        self.there.update(each for each in ids if each not in passing)
        for found, sequence in _STATE.findall(said):
            if (conversation := found.decode()) not in passing:
                self.sequences[conversation] = max(int(sequence), self.sequences.get(conversation, 0))
        self.gone.update(each.decode() for each in _DELETED.findall(said))
        self.credentials |= b"sk_" in said

    def includes(self, answer: bytes) -> bool:
        """Return whether the sent bytes include an answer to a client: its object, in its state or a later one."""
        return all(each.decode() in self.there for each in _ID.findall(answer)) and all(
            int(sequence) <= self.sequences.get(found.decode(), -1)
            for found, sequence in _STATE.findall(answer)
        )


def with_their_messages(passing: set[str], ops: Sequence[Op]) -> set[str]:
    """Return the deleted conversations, and the messages in them."""
    said = b"".join(op.data for op in ops if op.kind == "N")
    parts = ((message.decode(), of.decode()) for message, of in _PART.findall(said))
    return passing | {message for message, of in parts if of in passing}


@dataclass(frozen=True, slots=True)
class Moment:
    """A loss of power: the calls since the previous one, the surviving files in `tree`, and a description."""

    since: Sequence[Op]
    tree: Path
    words: str


def moments(
    disk: Disk, ops: Sequence[Op], cuts: int, chance: random.Random, scratch: Path
) -> Iterator[Moment]:
    """Yield moments of a record in order, including the last one, each with a random loss."""
    done = 0
    for cut in [*sorted(chance.sample(range(1, len(ops)), min(cuts, len(ops) - 1))), len(ops)]:
        for op in ops[done:cut]:
            disk.apply(op)
        loss = chance.choice((*_FIXED, torn(chance), torn(chance), torn(chance)))
        left = scratch / "left"
        disk.survivors(left, loss if cut < len(ops) else NOTHING_SPARED)
        yield Moment(ops[done:cut], left, f"after {cut} of {len(ops)} calls, {_words(loss)}")
        shutil.rmtree(left)
        done = cut


def losses(
    disk: Disk, ops: Sequence[Op], passing: set[str], cuts: int, chance: random.Random, scratch: Path
) -> Iterator[str]:
    """Yield the faults after a loss, for `cuts` moments of the record."""
    told = Told()
    for moment in moments(disk, ops, cuts, chance, scratch):
        for op in moment.since:
            if op.kind == "N":
                told.hear(op.data, passing)
        for problem in objections(moment.tree / "data", told):
            yield f"{moment.words}: {problem}"


def _words(loss: Loss) -> str:
    names = ("nothing spared", "all spared", "names spared", "bytes spared")
    return dict(zip(map(id, _FIXED), names, strict=True)).get(id(loss), f"torn at {loss.sector}")


def objections(data: Path, told: Told) -> Iterator[str]:
    """Yield the faults of a data directory, given everything that clients and receivers got."""
    if not (data / FILE_NAME).exists():
        if told.there or told.credentials:
            yield "the database is gone"
        return
    try:
        trio.run(_opened, data)
        secret = present_secrets(data, None)
        yield from map(str, check(data, secret, contents=True).problems)
    except (DataDirectoryError, SecretError, sqlite3.Error) as error:
        yield f"it can't be opened: {error}"
        return
    except ExceptionGroup as group:  # of the writer's nursery: a malformed file may show only as that starts
        if group.split(sqlite3.Error)[1] is not None:
            raise
        yield f"it can't be opened: {group.exceptions[0]}"
        return
    with closing(sqlite3.connect(data / FILE_NAME)) as connection:
        for each in sorted(told.there):
            if not _row(connection, each):
                yield f"{each} is lost"
        for each, sequence in told.sequences.items():
            if (stored := _sequence(connection, each)) < sequence:
                yield f"{each} is at {stored}, and was shown at {sequence}"
        for each in sorted(told.gone):
            if _row(connection, each):
                yield f"{each} is back"
        demo = connection.execute("SELECT 1 FROM projects").fetchone() is not None
    if (demo or told.credentials) and not (data / DEMO_FILE).exists():
        yield "the demo's credentials are lost"
    if not demo and told.credentials:
        yield "the demo is lost"


def _row(connection: sqlite3.Connection, identifier: str) -> bool:
    table = _TABLES[identifier.partition("_")[0]]
    return connection.execute(f"SELECT 1 FROM {table} WHERE id = ?", (identifier,)).fetchone() is not None


def _sequence(connection: sqlite3.Connection, conversation: str) -> int:
    row = connection.execute("SELECT sequence FROM conversations WHERE id = ?", (conversation,)).fetchone()
    return -1 if row is None else int(row[0])


async def _opened(data: Path) -> None:
    async with open_store(data, batch=256, readers=1, on_commit=lambda _: None):
        pass


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run that can be cut: the disk before it, its calls, the deleted objects, and the answers to clients.

    Args:
        answers: the bodies of all answers to requests that changed something, except those about `passing` objects.
    """

    disk: Disk
    ops: Sequence[Op]
    passing: set[str]
    answers: Sequence[bytes]

    def floors(self) -> Sequence[Floor]:
        """Return how many of the answers to clients the recorder saw, and how much of the record they cover."""
        told, first = Told(), len(self.ops)
        for number, op in enumerate(self.ops):
            if op.kind == "N":
                told.hear(op.data, self.passing)
                if told.there:
                    first = min(first, number)
        seen = sum(told.includes(each) for each in self.answers)
        return (
            Floor("requests answered", len(self.answers), 2 * ANSWERS_MIN),
            Floor("of their answers seen by the recorder", seen, len(self.answers) // 2),
            Floor("calls after the first of them", len(self.ops) - first, len(self.ops) // 4),
        )

    def problems(self, cuts: int, seed: int, scratch: Path) -> list[str]:
        """Return the problems after losses at `cuts` moments, and the floors that were not reached."""
        return [*shortfalls(self.floors()), *self.losses(cuts, seed, scratch)]

    def losses(self, cuts: int, seed: int, scratch: Path) -> list[str]:
        """Return the problems after losses at `cuts` moments."""
        chance = random.Random(seed)
        return list(losses(deepcopy(self.disk), self.ops, self.passing, cuts, chance, scratch))


def recorded(scratch: Path, seed: int, plant: str = "") -> Recorded:
    """Record a run of the real service, with a planted bug if one is named."""
    shim = Shim(scratch, scratch / "disk", recording=True)
    environ = {**_SETTINGS, **shim.environ}
    server = Server(shim.root, "--allow-private-webhooks", environ=environ, wrapped=serving(plant))
    disk, ledger = Disk(shim.root), Ledger()
    passing = trio.run(record, server, seed, ledger)
    ops = list(shim.ops())
    answers = [ask.answer for ask in ledger.asks if ask.outcome == "acknowledged"]
    return Recorded(disk, ops, with_their_messages(passing, ops), answers)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print the report, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash.powerloss", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--cuts", type=int, default=200, help="how many moments are tried")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--plant", default="", choices=plants_for("powerloss"), help="a bug to find")
    given = parser.parse_args(arguments)
    if reason := missing():
        print(f"not here: {reason}")
        return 2
    print(f"seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="deskwire-power-") as scratch:
        run = recorded(Path(scratch), given.seed, given.plant)
        problems = run.problems(given.cuts, given.seed, Path(scratch))
    print(
        f"{given.cuts} losses of power in {len(run.ops):,} calls", judged(run.floors()), *problems, sep="\n"
    )
    print("nothing that was told is lost" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
