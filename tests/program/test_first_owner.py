"""The link for the first owner of an installation without a demo: printed, used once, and printed again after a restart."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import trio

from deskwire.commands.admin.client import send_command
from deskwire.config.config import Config
from deskwire.program import serve as program

PASSWORD = "seven tidy otters swim"
OWNER = {"name": "Ada", "email": "ada@example.com", "password": PASSWORD}


@asynccontextmanager
async def without_demo(directory: Path, **settings: Any) -> AsyncIterator[program.Serving]:
    """Run a service without a demo."""
    async with trio.open_nursery() as nursery:
        config = Config(data_dir=directory, port=0, demo=False, **settings)
        serving: program.Serving = await nursery.start(partial(program.serve, config))
        yield serving
        serving.stop()


async def used(serving: program.Serving, link: str, **more: Any) -> httpx.Response:
    """Use a link."""
    async with httpx.AsyncClient(base_url=f"{serving.url}/v3") as http:
        return await http.post("/auth/links/use", json={"token": link.partition("#")[2], **OWNER, **more})


async def operated(directory: Path) -> Any:
    """Ask the service for another link, as the operator's command does."""
    return await trio.to_thread.run_sync(send_command, directory, "user.first-owner-link", b"{}")


async def methods(serving: program.Serving) -> Any:
    """Return the ways to sign in."""
    async with httpx.AsyncClient() as http:
        return (await http.get(f"{serving.url}/v3/auth/methods")).json()


async def test_link_creates_the_owner_the_organisation_and_a_project(tmp_path: Path) -> None:
    async with without_demo(tmp_path) as serving:
        assert serving.first_owner is not None
        assert (await methods(serving))["setUp"] is True
        assert serving.first_owner in program._greeting(serving, Config(data_dir=tmp_path))
        made = await used(serving, serving.first_owner, organisationName="Example Ltd")
        assert made.status_code == 200, made.text
        (project,) = made.json()["projects"]
        assert (project["role"], project["organisationName"]) == ("owner", "Example Ltd")
        assert (await methods(serving))["setUp"] is False
        assert (await used(serving, serving.first_owner)).json()["code"] == "link_ended"
    async with without_demo(tmp_path) as serving:
        assert serving.first_owner is None


async def test_links_of_earlier_starts_work_until_there_is_an_owner(tmp_path: Path) -> None:
    async with without_demo(tmp_path) as serving:
        first = serving.first_owner
    async with without_demo(tmp_path) as serving:
        second = serving.first_owner
        assert first is not None
        assert second is not None
        assert first.partition("#")[2] != second.partition("#")[2]
        assert (await used(serving, first)).status_code == 200
        assert (await used(serving, second)).json()["code"] == "link_ended"


async def test_one_of_many_concurrent_uses_wins(tmp_path: Path) -> None:
    async with without_demo(tmp_path) as serving:
        link, outcomes = serving.first_owner, list[int]()
        assert link is not None

        async def attempt(number: int) -> None:
            answer = await used(serving, link, email=f"owner{number}@example.com")
            outcomes.append(answer.status_code)

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(attempt, number)
        assert sorted(outcomes) == [200, 410, 410, 410]


async def test_missing_fields_of_the_first_account_are_all_named(tmp_path: Path) -> None:
    async with without_demo(tmp_path) as serving:
        assert serving.first_owner is not None
        answer = await used(serving, serving.first_owner, name=None, email=None)
        assert {each["pointer"] for each in answer.json()["errors"]} == {"/name", "/email"}


async def test_operator_prints_another_link_only_while_there_is_no_account(tmp_path: Path) -> None:
    async with without_demo(tmp_path) as serving:
        printed = (await operated(tmp_path))["answer"]
        assert re.fullmatch(rf"{serving.url}/desk/link#[\w-]{{43}}", printed["url"])
        assert (await used(serving, printed["url"])).status_code == 200
        assert (await operated(tmp_path))["refusal"]["code"] == "already_set_up"


async def test_installation_without_own_passwords_has_no_link(tmp_path: Path) -> None:
    settings = {"own_tokens": False, "jwt_jwks_url": "http://127.0.0.1:9/keys"}
    async with without_demo(tmp_path, **settings) as serving:
        assert serving.first_owner is None
        assert (await methods(serving))["setUp"] is False
