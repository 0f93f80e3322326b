"""Endpoints disabled, removed or given a new secret during deliveries.

Source: decisions 6.
"""

from __future__ import annotations

from pathlib import Path

import stripe
import trio
from trio.testing import MockClock

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.endpoint import SECRET_OVERLAP_MS, Endpoint
from deskwire.engine.webhooks.signature import new_secret
from tests.support.sockets.receivers import Installation, Receivers, Request, answering, opened, wall

FAILING = answering("500 Internal Server Error")
WORKING = answering("204 No Content")


async def settled() -> None:
    """Wait until all results are recorded; virtual time: the mock clock jumps."""
    await trio.sleep(0.5)  # virtual time: the mock clock jumps


async def disable(installation: Installation, endpoint: Endpoint) -> None:
    changed = replace(endpoint, status="disabled", status_reason="by the API")
    await installation.store.write(lambda tx: tx.save_endpoint(changed))
    installation.dispatcher.change(changed)


async def test_endpoint_disabled_during_a_retry_gets_nothing_more_and_its_deliveries_end(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    receiver = await receivers(FAILING)
    async with opened(tmp_path) as installation:
        endpoint = await installation.endpoint(receiver)
        await installation.send(1)
        await receiver.wait(1)
        await settled()
        await disable(installation, endpoint)
        await trio.sleep(60)  # virtual time: the mock clock jumps
        assert await installation.rows() == [(1, "skipped", 1)]
        assert await installation.reasons() == ["the endpoint is disabled: by the API"]
        assert len(receiver.requests) == 1
        receiver.behaviour = WORKING
        await installation.store.write(lambda tx: tx.save_endpoint(endpoint))
        installation.dispatcher.change(endpoint)
        await installation.send(2)
        await receiver.wait(2)
        await settled()
        assert (await installation.rows())[-1] == (2, "delivered", 1)


async def closed(installation: Installation, disabled: Endpoint) -> None:
    """Return when only this endpoint is left and no delivery is pending, on any disk."""
    with trio.fail_after(3600):
        while True:
            left = await installation.store.read(lambda reader: reader.unserved_endpoints())
            rows = await installation.rows()
            if left == [disabled.rowid] and all(row[1] != "pending" for row in rows):
                return
            await trio.sleep(1)  # virtual time: the mock clock jumps


async def test_a_start_cleans_up_disabled_and_removed_endpoints_after_a_crash(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    async def silent(_stream: trio.abc.Stream, _request: Request) -> None:
        await trio.sleep_forever()

    one, two = await receivers(silent), await receivers(silent)
    async with opened(tmp_path) as installation:
        disabled, removed = await installation.endpoint(one), await installation.endpoint(two)
        for conversation in range(1, 601):
            await installation.send(conversation, conversation=conversation)
        for endpoint, status in ((disabled, "disabled"), (removed, "removed")):
            changed = replace(endpoint, status=status, status_reason="by the API")  # type: ignore[arg-type]
            await installation.store.write(lambda tx, changed=changed: tx.save_endpoint(changed))  # type: ignore[misc]
        # A crash: the dispatcher was not notified.
    async with opened(tmp_path) as installation:
        await closed(installation, disabled)
        assert [row[1:] for row in await installation.rows()] == [("skipped", 0)] * 600


def signed(request: Request, secret: str) -> bool:
    """Return whether the published verifier accepts the request."""
    signature = request.headers["Service-Signature"]
    try:
        stripe.WebhookSignature.verify_header(request.body.decode(), signature, secret)
    except stripe.SignatureVerificationError:
        return False
    return True


async def test_both_secrets_sign_for_a_day_and_then_the_new_one_alone(
    tmp_path: Path, receivers: Receivers, mock_clock: MockClock
) -> None:
    """Decisions 6; running attempts are not cancelled."""
    go = trio.Event()

    async def slow(stream: trio.abc.Stream, request: Request) -> None:
        await go.wait()
        await WORKING(stream, request)

    receiver = await receivers(slow)
    async with opened(tmp_path) as installation:
        endpoint = await installation.endpoint(receiver)
        first, second = installation.sealing.open(endpoint.sealed_secret), new_secret()
        await installation.send(1)
        await receiver.wait(1)
        rotated = endpoint.with_secret(installation.sealing.seal(second), "tail", wall())
        await installation.store.write(lambda tx: tx.save_endpoint(rotated))
        installation.dispatcher.change(rotated)
        go.set()
        await installation.send(2, 3)
        await receiver.wait(3)
        await trio.sleep(SECRET_OVERLAP_MS / 1000)  # virtual time: the mock clock jumps
        await installation.send(4)
        await receiver.wait(4)
        await settled()
        assert [row[1:] for row in await installation.rows()] == [("delivered", 1)] * 4
        now = wall()
        assert await installation.store.write(lambda tx: tx.forget_old_secrets(now)) == 1
        assert (await installation.stored()).old_secret is None
    by_first = [signed(request, first) for request in receiver.requests]
    by_second = [signed(request, second) for request in receiver.requests]
    assert by_first == [True, True, True, False]
    assert by_second == [False, True, True, True]
    header = receiver.requests[1].headers["Service-Signature"]
    assert [part.partition("=")[0] for part in header.split(",")] == ["t", "v1", "v1"]
