"""The TypeScript SDK in a page of headless Chromium: modules without a bundler, calls of a user, and the stream by a backend."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.api.description.browser import CHROMIUM, browsing
from tests.sdk.typescript.page_server import backend
from tests.support.api.service import running

if CHROMIUM is None:
    raise pytest.UsageError("The SDK can't be tried in a browser: Chromium is missing.")


def page(installed: Path, folder: Path, settings: dict[str, str]) -> None:
    """Prepare the folder of the page."""
    (folder / "node_modules").symlink_to(installed / "node_modules")
    (folder / "settings.json").write_text(json.dumps(settings))
    shutil.copy(Path(__file__).with_name("page.html"), folder)


async def test_a_page_calls_as_a_user_and_follows_its_channel(installed: Path, tmp_path: Path) -> None:
    for name in ("service", "page", "browser"):
        (tmp_path / name).mkdir()
    async with (
        backend(tmp_path / "page") as shop,
        running(tmp_path / "service", cors_origins=(shop.url,)) as service,
    ):
        made = await service.create("ada", title="Order A-1001", message={"text": "Hello"})
        project = (await service.http.get("/s2s/project")).json()
        shop.api, shop.channel = service.http, "private-contact-ada"
        settings = {"service": service.url, "channel": shop.channel, "token": service.demo["token"]}
        page(
            installed,
            tmp_path / "page",
            settings | {"streamKey": project["streamKey"], "project": project["id"]},
        )
        async with browsing(tmp_path / "browser") as tab:
            await tab.open(f"{shop.url}/page.html")
            assert await tab.until("window.refusal") == (
                "A server key or machine credential must not reach a browser: anyone can read it there. "
                "Use a user's access token."
            )
            assert await tab.until("window.listed") == ["Order A-1001"]
            assert await tab.until("window.problem") == "NotFoundError conversation_not_found"
            assert await tab.until("window.others") == "403 not_yours: This is another customer's."
            await tab.until("window.seen.includes('subscribed')")
            await service.say(made, "in the browser")
            await tab.until("window.seen.includes('in the browser')")
            await service.say(made, "bye")
            assert await tab.until("window.state") == "closed"
            assert await tab.until("window.seen") == [
                "subscribed",
                "in the browser",
                "bye",
                "closed",
            ]
            exceptions = [each for each in tab.complaints if "status of 40" not in each]
    assert exceptions == []
    assert {each["channel_name"] for each in shop.asked} == {"private-contact-another", "private-contact-ada"}
