"""Pending deliveries a second to one prompt receiver, beside bare httpx that posts the same bytes.

The dispatcher and the store are the program's own, in a process without an HTTP server: rows are read, signed, posted
and recorded. httpx only posts: the same bodies with headers of the same length, from memory, with nothing stored.

httpx is measured twice, because its pool determines its speed with many requests in flight: as one client with its
default limits, and as a client for each request in flight, the fastest configuration found. (One client that keeps as
many idle connections as there are requests in flight is its worst case, so it is not used for the comparison.)
"""

from __future__ import annotations

import json
import ssl
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from operator import truediv
from pathlib import Path
from typing import Any, Final

import httpx
import trio
import trustme

from benchmarks import processes
from benchmarks.filling import SECRET, Filling, hook
from benchmarks.report import Cell, Section, median
from benchmarks.scale import Scale
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.engine.webhooks.dispatcher import Dispatcher
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.http.address import AddressPolicy
from deskwire.program.process import tune_collector_for_serving
from deskwire.storage.sqlite.store import SqliteStore, open_store

_LANES: Final = 256
_ALL: Final = 1_000_000
_HOST: Final = "127.0.0.1"
_LOOK_S: Final = 0.002
_GIVE_UP_S: Final = 300.0
_HEADERS: Final = {
    "Content-Type": "application/json",
    "User-Agent": "Deskwire/0.0.0",
    "Service-Signature": f"t=1800000000,v1={'0' * 64}",
    "Service-Delivery-Id": f"dlv_{'0' * 26}",
    "Service-Event": "message.created",
    "Service-Attempt": "1",
    "Service-Previous-Sequence": "1",
}
_Taken = tuple[float, float]
"""Requests a second, and microseconds of processor time for each, all threads together."""

_Rates = dict[str, list[tuple[_Taken, _Taken, _Taken]]]
"""By the number in flight: deliveries, one httpx client, httpx clients for each request in flight."""


def measure(scale: Scale, directory: Path) -> list[Section]:
    """Measure the rates of all over plain TCP and over TLS; figures to compare are taken within seconds."""
    rows: list[tuple[Cell, ...]] = []
    for way in ("plain", "TLS"):
        folder = directory / f"draining-{way}"
        folder.mkdir()
        with _receiver(folder, tls=way == "TLS") as (port, authority):
            rows += [(way, *row) for row in _drained(scale, folder, port, authority)]
    columns = (
        *(
            "connection",
            "in flight",
            "deliveries/s",
            "one httpx client/s",
            "of it",
            "a client each/s",
            "of them",
        ),
        *("µs", "µs one client", "µs a client each"),
    )
    note = (
        "Deliveries are read from disk, signed, posted, and recorded on disk with their attempts; httpx posts the same "
        "bytes from memory. All have the same core in turn, the receiver has the other one. µs: processor time for each request, which other "
        "programs disturb less than rates."
    )
    return [Section("drain", "Deliveries to one prompt receiver, and bare httpx", columns, rows, note)]


@contextmanager
def _receiver(folder: Path, *, tls: bool) -> Iterator[tuple[int, str]]:
    """Run a prompt receiver; yield its port, and the file of its certificate authority, "" without TLS."""
    arguments, authority = ["measured"], ""
    if tls:
        own, issuer = folder / "receiver.pem", trustme.CA()
        issuer.issue_cert(_HOST).private_key_and_cert_chain_pem.write_to_path(str(own))
        authority = str(folder / "authority.pem")
        issuer.cert_pem.write_to_path(authority)
        arguments.insert(0, str(own))
    process = processes.start("benchmarks.receiver", *arguments, core=processes.LOAD)
    try:
        yield json.loads(processes.line(process))[0], authority
    finally:
        processes.stop(process)


def _drained(scale: Scale, folder: Path, port: int, authority: str) -> Iterator[tuple[Cell, ...]]:
    wanted = {"directory": str(folder), "port": port, "authority": authority, "scale": asdict(scale)}
    reply = processes.answer("benchmarks.draining", json.dumps(wanted), core=processes.SERVER)
    rates: _Rates = json.loads(reply)
    for flights, taken in rates.items():
        ours, one, each = ([rate for rate, _ in side] for side in zip(*taken, strict=True))
        of_one, of_each = (median(map(truediv, ours, theirs)) for theirs in (one, each))
        cpu = [median(us for _, us in side) for side in zip(*taken, strict=True)]
        yield int(flights), median(ours), median(one), of_one, median(each), of_each, *cpu


class _Watch:
    """A timer of a number of requests that starts now."""

    def __init__(self, requests: int) -> None:
        self._requests = requests
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> _Taken:
        elapsed, cpu = time.perf_counter() - self._began, time.process_time() - self._cpu
        return self._requests / elapsed, cpu * 1e6 / self._requests


@dataclass(frozen=True, slots=True)
class _Drain:
    """The contestants, in the process that is measured."""

    store: SqliteStore
    filling: Filling
    endpoint: Endpoint
    dispatcher: Any
    context: ssl.SSLContext

    async def round(
        self, flights: int, deliveries: int, *, ours_first: bool
    ) -> tuple[_Taken, _Taken, _Taken]:
        """Measure what all of them take, with the same posts."""
        await self.filling.post(deliveries)
        pending = await self.store.read(
            lambda reader: reader.pending_deliveries(self.endpoint.rowid, 0, _ALL)
        )
        bodies = [delivery.event.body for delivery in pending]
        if ours_first:
            ours = await self._ours(flights, len(bodies))
        one, each = await self._httpx(flights, 1, bodies), await self._httpx(flights, flights, bodies)
        if not ours_first:
            ours = await self._ours(flights, len(bodies))
        return ours, one, each

    async def _ours(self, flights: int, deliveries: int) -> _Taken:
        dispatcher: Dispatcher = self.dispatcher(concurrency=flights)
        async with trio.open_nursery() as nursery:
            watch = _Watch(deliveries)
            await nursery.start(dispatcher.run)
            with trio.fail_after(_GIVE_UP_S):
                while dispatcher.counters.delivered < deliveries:  # noqa: ASYNC110  # the program does not announce it
                    await trio.sleep(_LOOK_S)
            taken = watch.read()
            nursery.cancel_scope.cancel()
        if dispatcher.counters.attempts != deliveries:
            raise RuntimeError("some attempts have failed")
        return taken

    async def _httpx(self, flights: int, clients: int, bodies: Sequence[bytes]) -> _Taken:
        left = iter(bodies)

        async def keep_posting(client: httpx.AsyncClient) -> None:
            for body in left:
                response = await client.post(self.endpoint.url, content=body, headers=_HEADERS)
                response.raise_for_status()

        async with AsyncExitStack() as stack:
            made = [httpx.AsyncClient(verify=self.context, timeout=_GIVE_UP_S) for _ in range(clients)]
            for client in made:
                await stack.enter_async_context(client)
            watch = _Watch(len(bodies))
            async with trio.open_nursery() as nursery:
                for number in range(flights):
                    nursery.start_soon(keep_posting, made[number % clients])
            return watch.read()


async def main(directory: Path, port: int, authority: str, scale: Scale) -> _Rates:
    """Measure all rates by the number in flight, round by round; every second round in the other order."""
    rates: _Rates = {str(flights): [] for flights in scale.flights}
    sealing = Encryption(Secrets(SECRET))
    context = ssl.create_default_context(cafile=authority or None)
    url = f"{'https' if authority else 'http'}://{_HOST}:{port}/hook"
    async with open_store(directory, batch=256, readers=2, on_commit=lambda _: None) as store:
        filling = await Filling.begin(store, directory)
        endpoint = await store.write(partial(hook, filling.project, sealing, url))
        await filling.create(_LANES)
        make = partial(
            Dispatcher, store, wall_clock, sealing, AddressPolicy(allow_private=True), ssl_context=context
        )
        drain = _Drain(store, filling, endpoint, make, context)
        await drain.round(
            max(scale.flights), 0, ours_first=True
        )  # drain the deliveries of the setup, and warm up
        tune_collector_for_serving()
        for number in range(scale.rounds):
            for flights in scale.flights:
                taken = await drain.round(flights, scale.deliveries, ours_first=number % 2 == 0)
                rates[str(flights)].append(taken)
    return rates


if __name__ == "__main__":
    given: dict[str, Any] = json.loads(sys.stdin.read())
    sizes = Scale(**given["scale"])
    print(json.dumps(trio.run(main, Path(given["directory"]), given["port"], given["authority"], sizes)))
