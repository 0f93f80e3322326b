"""Sign-in in a browser: a service at a name that passkeys accept, codes of an app, virtual passkeys, and old proofs."""

from __future__ import annotations

import base64
import hmac
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
from playwright.sync_api import Page, expect

from tests.support.sockets.server_process import free_port
from tests.web.harness.desk import Desk
from tests.web.harness.stage import PASSWORD, Stage, staged_at

STEP_S: Final = 30
_DIGITS: Final = 10**6


@contextmanager
def staged_at_localhost(directory: Path, at: int | None = None, /, **environ: str) -> Iterator[Stage]:
    """Start a service whose public URL has a host name, because passkeys don't work at IP addresses.

    `at` is its port; by default a free one.
    """
    port = at or free_port()
    url = f"http://localhost:{port}"
    with staged_at(port, directory, DESKWIRE_PUBLIC_URL=url, **environ) as stage:
        stage.url = url
        yield stage


def code(secret: str, steps: int = 0) -> str:
    """Return the code of an authenticator app (RFC 6238), by default of the current 30 seconds."""
    key = base64.b32decode(secret + "=" * (-len(secret) % 8), casefold=True)
    counter = int(time.time()) // STEP_S + steps
    digest = hmac.digest(key, counter.to_bytes(8, "big"), "sha1")
    at = digest[-1] & 15
    return f"{(int.from_bytes(digest[at : at + 4], 'big') & 0x7FFFFFFF) % _DIGITS:06}"


class App:
    """An authenticator app. Each code is accepted once, so it shows codes of later time steps when it is asked again."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self._last = 0

    def code(self) -> str:
        """Return a code that was not shown before; at most one step ahead of the clock."""
        now = int(time.time()) // STEP_S
        step = max(now - 1, self._last + 1)
        assert step <= now + 1, "the test needs more codes than the service accepts within 30 seconds"
        self._last = step
        return code(self.secret, step - now)


def enrolled(stage: Stage, email: str, password: str = PASSWORD) -> tuple[App, list[str]]:
    """Set up an authenticator app for a user in a session that ends with it; return it with the recovery codes."""
    with httpx.Client(base_url=f"{stage.url}/v3", headers={"Sec-Fetch-Site": "same-origin"}) as page:
        page.post("/auth/session", json={"email": email, "password": password}).raise_for_status()
        secret = page.post("/users/me/factors/totp", json={}).raise_for_status().json()["secret"]
        app = App(secret)
        answer = page.post("/users/me/factors/totp/confirm", json={"code": app.code()}).raise_for_status()
        codes: list[str] = answer.json()["recoveryCodes"]
        page.delete("/auth/session").raise_for_status()
        return app, codes


def virtual_passkeys(page: Page) -> Any:
    """Give a page an authenticator that verifies its user, without a dialog; return the connection to the browser."""
    cdp = page.context.new_cdp_session(page)
    cdp.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    cdp.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return cdp


def age_proofs(desk: Desk, minutes: int = 20) -> None:
    """Make the last proofs of all sessions older, while the service is down and the window is empty."""
    desk.page.goto("about:blank")
    change(desk.stage, "UPDATE sessions SET proved_at = proved_at - ?", minutes * 60_000)


def change(stage: Stage, sql: str, *values: Any) -> None:
    """Change the database while the service is down."""
    stage.background.call(stage.server.stop)
    with closing(sqlite3.connect(stage.server.directory / "data" / "deskwire.sqlite3")) as conn, conn:
        conn.execute(sql, values)
    stage.start()


def fill_sign_in(desk: Desk, email: str, password: str = PASSWORD) -> None:
    """Open the desk, and send the form with the password."""
    desk.open()
    desk.page.get_by_label("Email").fill(email)
    desk.page.get_by_label("Password", exact=True).fill(password)
    desk.page.get_by_role("button", name="Sign in", exact=True).click()


def signed_in(desk: Desk) -> None:
    """Wait until the list of conversations is shown."""
    expect(desk.page.get_by_role("region", name="Conversations")).to_be_visible()
