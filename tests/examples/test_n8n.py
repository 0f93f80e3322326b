"""The n8n workflow: its code on the test vectors and on real deliveries, and its action at a real service.

n8n itself (2.41.1) was tried by hand; its 3 GB of packages are no part of the tests. Node runs the workflow's own code and
expressions.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from typing import Any, Final

import httpx
import pytest
import trio

from tests.api.events.test_channels_agree import receiving
from tests.examples.languages import EXAMPLES, VECTORS
from tests.support.root import ROOT

WORKFLOW: Final = EXAMPLES / "n8n.json"
NODES: Final[dict[str, dict[str, Any]]] = {
    each["name"]: each for each in json.loads(WORKFLOW.read_text())["nodes"]
}
needs_node: Final = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")


def play(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdict on each request, with the call that follows."""
    command = ["node", str(VECTORS / "n8n.mjs"), str(WORKFLOW)]
    done = subprocess.run(command, input=json.dumps(requests), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def request(secret: str, header: str, body: bytes, **more: Any) -> dict[str, Any]:
    """Return a request as the webhook node has it, and the secret of the credential."""
    sent = {"service-signature": header}
    return {"secret": secret, "headers": sent, "body": base64.b64encode(body).decode(), **more}


@needs_node
def test_code_gives_the_published_verdict_on_every_vector() -> None:
    vectors = json.loads((ROOT / "docs/signature-vectors.json").read_text())
    asked = [
        request(each["secret"], each["header"], each["body"].encode(), now=each["now"]) for each in vectors
    ]
    verdicts = {each["name"]: answer["genuine"] for each, answer in zip(vectors, play(asked), strict=True)}
    assert verdicts == {each["name"]: each["valid"] for each in vectors}


@needs_node
@pytest.mark.long
async def test_delivery_leads_to_one_message_however_often_it_arrives(api: httpx.AsyncClient) -> None:
    async with receiving() as receiver:
        endpoint = (await api.post("/s2s/webhooks", json={"url": receiver.url})).json()
        body = {"contact": {"userId": "u1", "name": "Grüße 👋"}, "message": {"text": "Hello"}}
        conversation = (await api.post("/s2s/conversations", json=body)).json()["id"]
        await receiver.wait(2)
        deliveries = [
            request(endpoint["secret"], each.headers["Service-Signature"], each.body)
            for each in receiver.requests
        ]
    created, posted = await trio.to_thread.run_sync(play, deliveries)
    assert posted == {"genuine": True}
    (forged,) = await trio.to_thread.run_sync(play, [{**deliveries[0], "secret": "whsec_another"}])
    assert forged == {"genuine": False}
    action = created["action"]
    path = action["url"].removeprefix("https://support.example.com/v3")
    assert path == f"/s2s/conversations/{conversation}/messages"
    for _ in range(2):
        answer = await api.request(
            action["method"], path, json=json.loads(action["body"]), headers=action["headers"]
        )
        assert answer.status_code == 200, answer.text
    messages = (await api.get(path)).json()["items"]
    assert [each["author"]["type"] for each in messages] == ["contact", "bot"]


def test_workflow_reads_the_raw_body_answers_before_the_action_and_has_no_secret() -> None:
    workflow = json.loads(WORKFLOW.read_text())
    assert NODES["Receive event"]["parameters"]["options"] == {"rawBody": True}
    assert NODES["Receive event"]["parameters"]["responseMode"] == "responseNode"
    after = {
        name: [[each["node"] for each in branch] for branch in links["main"]]
        for name, links in workflow["connections"].items()
    }
    assert after["Genuine?"] == [["Answer 204"], ["Answer 400"]]
    assert after["Answer 204"] == [["New conversation?"]]
    assert "Answer 400" not in after
    assert {name for links in after.values() for branch in links for name in branch} | {
        "Receive event"
    } == NODES.keys()
    assert NODES["Post message"]["retryOnFail"] is True
    for word in ("whsec_", "sk_", "Bearer"):
        assert word not in WORKFLOW.read_text()
