"""The check of a site through the wire: a real page on a real socket."""

from __future__ import annotations

from pathlib import Path

from tests.api.channels.test_channels import made
from tests.engine.customers.test_page_fetch import page, site
from tests.support.api.service import Service, running


async def test_report_names_all_that_keeps_the_widget_from_working(service: Service) -> None:
    shop = await made(service.dashboard)
    policy = b"Content-Security-Policy: script-src 'self'"
    async with site(page(b"<html>", policy, b"Cross-Origin-Embedder-Policy: require-corp")) as host:
        url = f"http://localhost:{host.port}/help"
        answer = await service.dashboard.post(f"/channels/{shop['id']}/check", json={"url": url})
    report = answer.json()
    assert (report["url"], report["status"], report["ok"], report["sameSite"]) == (url, 200, False, "no")
    assert [each["code"] for each in report["findings"]] == [
        *("loader_missing", "origin_missing", "csp_blocks_script", "coep_blocks_frame", "other_site")
    ]


async def test_page_with_the_loader_is_fine(service: Service) -> None:
    shop = await made(service.dashboard, origins=["http://127.0.0.1"])
    tag = f'<script async src="{service.url}/widget/{shop["id"]}.js"></script>'
    async with site(page(tag.encode())) as host:
        url = f"http://127.0.0.1:{host.port}/"
        answer = await service.http.post(f"/channels/{shop['id']}/check", json={"url": url})
    assert answer.json() == {"url": url, "status": 200, "ok": True, "sameSite": "yes", "findings": []}


async def test_unreachable_page_is_a_finding_and_a_wrong_url_a_refusal(service: Service) -> None:
    path = f"/channels/{service.demo['channelId']}/check"
    gone = (await service.dashboard.post(path, json={"url": "http://127.0.0.1:9999/"})).json()
    assert (gone["ok"], gone["status"]) == (False, None)
    assert [each["code"] for each in gone["findings"]] == ["page_unreachable"]
    assert "connection refused" in gone["findings"][0]["message"]
    for url, code in (("ftp://x", "url_not_https"), ("https://user@shop.example/", "url_user_info")):
        refused = await service.dashboard.post(path, json={"url": url})
        assert refused.status_code == 422
        assert code in {each["code"] for each in refused.json()["errors"]}


async def test_page_at_a_private_address_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path, allow_private_webhooks=False) as service, site(page(b"")) as host:
        path = f"/channels/{service.demo['channelId']}/check"
        for name in ("127.0.0.1", "localhost", "0x7f.1", "[::ffff:127.0.0.1]"):
            refused = await service.dashboard.post(path, json={"url": f"https://{name}:{host.port}/"})
            assert refused.status_code == 422, name
            assert {each["pointer"] for each in refused.json()["errors"]} == {"/url"}
    assert host.connections == 0
