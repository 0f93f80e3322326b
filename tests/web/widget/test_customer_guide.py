"""The examples of `docs/guide/customer-js.md`: the page in a browser, and the storage in Node.js."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.root import ROOT
from tests.web.harness.customer_page import opened_site
from tests.web.harness.stage import Stage

EXAMPLES = ROOT / "docs/examples"
APP = """
import { readFileSync, writeFileSync } from "node:fs";
import { textStorage } from "STORAGE";
import { createCustomer } from "MODULE";

const [file, baseUrl, channelId, jwt, text] = process.argv.slice(2);
const read = () => { try { return JSON.parse(readFileSync(file, "utf8")); } catch { return {}; } };
const store = {
  getItem: async (key) => read()[key] ?? null,
  setItem: async (key, value) => writeFileSync(file, JSON.stringify({ ...read(), [key]: value })),
};
const customer = createCustomer({ baseUrl, channelId, identity: async () => jwt, storage: textStorage(store) });
if (text) await customer.send({ conversation: null, text });
else {
  await customer.start();
  while (customer.state.outbox.length || !customer.state.conversations.size) await new Promise((done) => setTimeout(done, 50));
  console.log(JSON.stringify([...customer.state.conversations.values()].map(({ lastMessage }) => lastMessage.text)));
}
process.exit();
"""


@pytest.mark.journey
def test_page_of_the_guide_sends_and_shows_messages(stage: Stage, browser: Browser) -> None:
    with opened_site(stage) as site:
        source = (EXAMPLES / "customer.html").read_text()
        assert source.count("https://support.shop.example") == 2
        source = source.replace("https://support.shop.example", stage.url)
        site.pages["/guide"] = source.replace("chn_01KZ000000000000000000CHAN", site.channel["id"]).encode()
        page = browser.new_page()
        page.goto(f"{site.origin}/guide")
        log = page.get_by_role("log")
        for text in ("Hello", "Is anyone there?"):
            page.get_by_label("Message").fill(text)
            page.get_by_role("button", name="Send").click()
            expect(page.get_by_label("Message")).to_have_value("")
            expect(log).to_contain_text(text)
        expect(log).not_to_contain_text("not sent yet")
        (conversation,) = site.conversations()
        site.answer(conversation, "Yes!")
        expect(log).to_contain_text("Yes!")
        page.reload()
        expect(log.get_by_role("listitem")).to_have_count(3)
        assert site.threads() == [["Hello", "Is anyone there?", "Yes!"]]
        page.context.close()


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_storage_of_the_guide_keeps_messages_between_runs_of_an_app(stage: Stage, tmp_path: Path) -> None:
    with opened_site(stage, native=True) as site:
        modules = {"STORAGE": EXAMPLES / "customer-storage.mjs", "MODULE": tmp_path / "widget/customer.js"}
        shutil.copytree(ROOT / "http/deskwire/http/pages/widget", tmp_path / "widget")
        (tmp_path / "widget/package.json").write_text('{"type": "module"}')
        source = APP
        for name, path in modules.items():
            source = source.replace(name, path.as_uri())
        (tmp_path / "app.mjs").write_text(source)

        def run(url: str, text: str = "") -> str:
            given = [str(tmp_path / "store.json"), url, site.channel["id"], site.identity("ada"), text]
            command = ["node", str(tmp_path / "app.mjs"), *given]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout

        stage.close_road()
        run(stage.url, "Written without a network")
        stage.open_road()
        assert site.threads() == []
        assert json.loads(run(stage.url)) == ["Written without a network"]
        assert site.threads() == [["Written without a network"]]
