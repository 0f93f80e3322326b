"""Attacks on the widget in a browser: the next customer at a shared computer, and hostile pages and frames."""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest
from playwright.sync_api import expect

from tests.web.harness.widget import CHANNEL, HostWindow


def signed_channel(window: HostWindow) -> dict[str, Any]:
    """Create a channel; return it with its secret."""
    made: dict[str, Any] = window.stage.s2s.post("/channels", json=CHANNEL).raise_for_status().json()
    return made


def identity(channel: dict[str, Any], user_id: str) -> str:
    """Return the identity of a user, as the backend of the host signs it."""
    claims = {"sub": user_id, "aud": channel["id"], "exp": int(time.time()) + 600, "name": user_id}
    return jwt.encode(claims, channel["identity"]["secret"], algorithm="HS256")


def sign_in(window: HostWindow, channel: dict[str, Any], user_id: str) -> None:
    """Open the host's page, on which this user is signed in, and its panel."""
    identify = f"Deskwire.push(['identify', async () => '{identity(channel, user_id)}']);"
    window.site.first = f"window.Deskwire = window.Deskwire || []; {identify}"
    window.open(channel["id"])
    window.button.click()
    expect(window.box).to_be_visible()


@pytest.mark.journey
def test_next_customer_at_a_shared_computer_sees_no_draft(window: HostWindow) -> None:
    channel = signed_channel(window)
    sign_in(window, channel, "ada")
    window.box.fill("A secret of Ada")
    sign_in(window, channel, "ada")
    expect(window.box).to_have_value("A secret of Ada")
    sign_in(window, channel, "bob")
    window.say("Hello from Bob")  # the field is empty before, or the message would have both texts
    expect(window.log().get_by_text("Hello from Bob")).to_be_visible()
    expect(window.box).to_have_value("")
    # The browser gives the panel no storage of its own here, so the host's page keeps the drafts.
    kept = window.calls("JSON.stringify([{...sessionStorage}, {...localStorage}])")
    assert "owner" in kept
    assert "secret" not in kept


def test_next_customer_of_the_same_page_sees_no_draft(window: HostWindow) -> None:
    channel = signed_channel(window)
    sign_in(window, channel, "ada")
    window.box.fill("A secret of Ada")
    window.calls(f"void Deskwire.identify(async () => '{identity(channel, 'bob')}')")
    expect(window.box).to_have_value("")


def test_draft_of_a_visitor_stays_after_signing_in(window: HostWindow) -> None:
    channel = signed_channel(window)
    window.open(channel["id"])
    window.button.click()
    window.box.fill("Half a sentence")
    with window.page.expect_response(f"{window.stage.url}/v3/customer/session"):
        window.calls(f"void Deskwire.identify(async () => '{identity(channel, 'ada')}')")
    window.page.wait_for_timeout(300)
    expect(window.box).to_have_value("Half a sentence")


def test_hostile_frame_of_the_page_gets_no_port_and_no_panel(window: HostWindow) -> None:
    """A frame of another site in the host's page says the panel's greeting, and shows the panel itself."""
    channel = signed_channel(window)
    window.tolerated += ["frame-ancestors", "ERR_BLOCKED_BY_RESPONSE"]
    window.open(channel["id"])
    window.button.click()
    expect(window.box).to_be_visible()
    got = window.calls(
        """(url) => new Promise((done) => {
      const frame = document.createElement("iframe");
      frame.srcdoc = `<script>
        addEventListener("message", ({ ports }) => ports.length && parent.postMessage("got a port", "*"));
        parent.postMessage("deskwire:hello", "*");
      </script><iframe src="${url}"></iframe>`;
      frame.sandbox = "allow-scripts";
      const heard = [];
      addEventListener("message", ({ data, source }) => source === frame.contentWindow && heard.push(data));
      frame.onload = () => setTimeout(() => done(heard), 500);
      document.body.append(frame);
    })""",
        f"{window.stage.url}/widget/{channel['id']}",
    )
    assert got == ["deskwire:hello"]
    inner = [each for each in window.page.frames if each.parent_frame and each.parent_frame.parent_frame]
    assert [each for each in inner if each.query_selector("#panel")] == []
