"""A route has one path: a text that looks like another spelling of it matches no route (ADR 7).

Spellings that RFC 9112 and RFC 3986 define as equivalent, the URL of a path and unnecessarily encoded letters, have the
same response, count and limits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from ipaddress import ip_network
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from deskwire.engine.core.http1 import plain_request
from deskwire.http.api.route_trie import RouteNode, RouteTrie
from deskwire.http.api.routing import Route
from deskwire.http.app import ROUTES
from tests.api.operating.test_metrics import scrape
from tests.support.api.request_paths import ask
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.h11_oracle import answers

pytestmark = pytest.mark.long  # each route with each bad text or spelling

ID: Final = "x1"
ODD: Final = {
    "slash in front": lambda path: f"/{path}",
    "host in front": lambda path: f"//x{path}",
    "slash within": lambda path: path[0] + path[1:].replace("/", "//", 1),
    "slash behind": lambda path: f"{path}/",
    "dot": lambda path: f"/.{path}",
    "dot within": lambda path: _behind_first(path, "/."),
    "dots": lambda path: f"/x/..{path}",
    "dots within": lambda path: _behind_first(path, "/x/.."),
    "encoded dot": lambda path: _behind_first(path, "/%2e"),
    "encoded dots": lambda path: f"/x/%2E%2e{path}",
    "encoded slash": lambda path: f"/%2f{path[1:]}",
    "encoded slash in front": lambda path: f"%2f{path[1:]}",
    "backslash": lambda path: path.replace("/", "\\", 1),
    "encoded backslash": lambda path: f"/%5c{path[1:]}",
    "parameter": lambda path: _behind_first(path, ";a=b"),
    "encoded question mark": lambda path: _behind_first(path, "%3f"),
    "capital": lambda path: path[:2].upper() + path[2:],
    "encoded twice": lambda path: f"/%25{ord(path[1]):02x}{path[2:]}",
    "blank": lambda path: f"/%20{path[1:]}",
    "null": lambda path: _behind_first(path, "%00"),
    "wide letter": lambda path: f"/%ef%bd%{ord(path[1]) + 0x20:02x}{path[2:]}",
    "relative": lambda path: path[1:],
    "fragment within": lambda path: _behind_first(path, "#"),
    "url with a fragment": lambda path: f"http://x{path}#a",
    "url of another scheme": lambda path: f"ftp://x{path}",
    "no scheme": lambda path: f"x:{path}",
    "no host": lambda path: f"http:{path}",
    "url with a slash too many": lambda path: f"http://x/{path}",
}
SAME: Final = {
    "url": lambda path: f"http://elsewhere.example{path}",
    "url in capitals": lambda path: f"HTTPS://X:1{path}",
    "encoded letter": lambda path: f"/%{ord(path[1]):02x}{path[2:]}",
    "no query": lambda path: f"{path}?",
}


def _behind_first(path: str, more: str) -> str:
    """Return the path with a text after its first word."""
    word, slash, rest = path[1:].partition("/")
    return f"/{word}{more}{slash}{rest}"


def path_of(route: Route) -> str:
    """Return a path of the route."""
    return re.sub(r"<[^>]*>", ID, route.path)


def routes() -> Iterator[tuple[Route, str]]:
    """Return all routes with a name that can be written otherwise, each with a path."""
    return ((route, path_of(route)) for route in ROUTES if route.path != "/")


def aliases() -> Iterator[tuple[Route, str]]:
    """Yield all routes with every other way to write their paths."""
    for (route, path), how in product(routes(), ODD.values()):
        target = how(path)
        if target == path or (target == f"{path}/" and "<path:" in route.path):
            continue  # there is no slash within /healthz, and a translation's key may end with one
        if route.path.startswith("/desk") and target.startswith("/desk/"):
            continue  # any path below /desk/ is the page, which parses its own address
        yield route, target


async def asked(service: Service, calls: Sequence[tuple[str, str]], credential: str) -> list[tuple[int, str]]:
    """Status and code of the answers to these calls, method and target, on one connection that the lane gives up."""
    head = f"Host: x\r\nAuthorization: {credential}\r\nTE: trailers\r\n"
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    found: list[tuple[int, str]] = []
    for some in (calls[at : at + 50] for at in range(0, len(calls), 50)):
        lines = [f"{method} {target} HTTP/1.1\r\n{head}\r\n" for method, target in some]
        lines[-1] = lines[-1].replace("TE: trailers", "Connection: close")
        with trio.fail_after(HANG_TIMEOUT_S):
            async with await trio.open_tcp_stream(host, int(port)) as stream:
                await stream.send_all("".join(lines).encode("latin-1"))
                data = b"".join([bytes(part) async for part in stream])
        for each in answers(data, [method for method, _ in some], ended=True):
            # A page of a channel that does not exist is refused in HTML.
            problem = each.status >= 400 and not each.body.startswith(b"<!doctype html>")
            found.append((each.status, json.loads(each.body)["code"] if problem else ""))
    assert len(found) == len(calls)
    return found


async def test_no_route_has_a_second_path(service: Service) -> None:
    calls = [(route.method, target) for route, target in aliases()]
    said = await asked(service, calls, f"Bearer {service.demo['serverKey']}")
    assert {call for call, answer in zip(calls, said, strict=True) if answer != (404, "not_found")} == set()
    reached = {label for _, label, _ in await counted(service)}
    assert reached - {"/docs/{asset}", "/web/{tree}/{file}"} == {
        "none"
    }  # a dot is the name of a file that there is not


def _names_a_file(place: RouteNode) -> bool:
    """Whether the routes there serve packaged files, where a dot is the name of a file that there is not."""
    return place.names[-1:] in (("asset",), ("file",))


def test_fast_path_matches_no_path_alias() -> None:
    lanes = RouteTrie(ROUTES, direct=True)
    for route, target in aliases():
        head = plain_request(f"{route.method} {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        found = None if head is None else lanes.find(head.path.split("/"))
        assert found is None or _names_a_file(found[0]), target


@pytest.mark.parametrize("how", SAME.values(), ids=SAME)
async def test_equivalent_paths_have_the_same_guard_and_count(
    service: Service, how: Callable[[str], str]
) -> None:
    for credential in ("", "Bearer sk_wrong"):
        plain = await asked(service, [(route.method, path) for route, path in routes()], credential)
        other = await asked(service, [(route.method, how(path)) for route, path in routes()], credential)
        assert other == plain
    assert {labels: count for labels, count in (await counted(service)).items() if count % 2} == {}


@pytest.mark.parametrize("how", SAME.values(), ids=SAME)
async def test_equivalent_paths_share_their_limits(tmp_path: Path, how: Callable[[str], str]) -> None:
    trusted = (ip_network("127.0.0.1/32"),)
    limits: dict[str, Any] = {
        "auth_failures_per_minute": 2,
        "rate_limit_per_minute": 1,
        "rate_limit_burst": 2,
    }
    async with running(tmp_path, trusted_proxies=trusted, **limits) as service:
        path, right = "/v3/s2s/project", f"Bearer {service.demo['serverKey']}"
        for credential, statuses in ((right, [200, 200, 429, 429]), ("Bearer sk_x", [401, 401, 429, 429])):
            headers = {"Authorization": credential, "X-Forwarded-For": "192.0.2.1"}
            said = [
                await ask(service, "lane", "GET", each, whole=True, **headers)
                for each in (path, how(path)) * 2
            ]
            assert [answer.status for answer in said] == statuses


UPGRADE: Final = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


@pytest.mark.parametrize("target", ["//app/{}", "/%61pp/{}", "/./app/{}", "/App/{}", "http://x/app/{}"])
async def test_the_streams_path_has_no_other_name_either(service: Service, target: str) -> None:
    path = target.format(f"{service.demo['streamKey']}?protocol=7")
    status, _ = await service.talk(f"GET {path} HTTP/1.1\r\nHost: x\r\n{UPGRADE}\r\n".encode())
    assert status == 404


async def test_rest_of_the_stream_path_is_one_app_key(service: Service) -> None:
    keys = ("/{}", "{}/", "./{}", "x/../{}", "{};a", "{}%00")
    said: dict[str, bytes] = {}

    async def connect(key: str) -> None:
        path = f"/app/{key.format(service.demo['streamKey'])}?protocol=7"
        _, said[key] = await service.talk(f"GET {path} HTTP/1.1\r\nHost: x\r\n{UPGRADE}\r\n".encode())

    async with trio.open_nursery() as nursery:
        for key in keys:
            nursery.start_soon(connect, key)
    for key in keys:
        assert b"4001" in said[key], key  # there is no such application
        assert b"connection_established" not in said[key], key


async def counted(service: Service) -> dict[tuple[str, str, str], float]:
    """Return the number of requests so far, by method, route and status."""
    figures = await scrape(service)
    labels = [dict(each) for each in figures.series("http_requests_total")]
    return {
        (each["method"], each["route"], each["status"]): figures("http_requests_total", **each)
        for each in labels
    }
