"""Odd JSON, queries, headers, tokens and forms on every route: each is answered, and what is refused changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_from_bytes

import httpx
import jwt
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.http.api.routing import Route
from deskwire.http.app import ROUTES
from tests.api.conventions.test_guards import WITH_BODY, Walk, walking
from tests.protocol.test_http_bytes import Port
from tests.support.properties import budget, here, hold
from tests.support.sockets.h11_oracle import Answer, check_problem
from tests.support.sockets.request_bytes import LAST

ODD_JSON: Final = (
    b"\xef\xbb\xbf{}",
    b'{"a": "\xff"}',
    b'{"a": "\xed\xa0\x80"}',
    b'{"a": "\\ud800"}',
    b'{"a": NaN}',
    b'{"a": Infinity}',
    b'{"a": 1e999}',
    b'{"a": -1e-999}',
    b'{"a": ' + b"9" * 5_000 + b"}",
    b'{"a": 1, "a": 2}',
    b'{"__proto__": {}, "constructor": null}',
    b'{"\\u0000": "\\u0000"}',
    b'{"a": "\x00"}',
    b"{}\x00",
    b"{} {}",
    b"{'a': 1}",
    b'{"a": 1,}',
    b"// x\n{}",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"null",
    b"[]",
    b'"x"',
    b"0",
    b"true",
    b"-",
    b"\x00" * 100,
    b'{"' + b"k" * 100_000 + b'": 1}',
    b"{" + b",".join(b'"k%d":0' % number for number in range(3_000)) + b"}",
    "\ufeff{}".encode("utf-16"),
)
"""Bodies that are not JSON, or JSON without meaning here; routes accept them at most as an empty body."""


@pytest.fixture
async def walk(tmp_path: Path) -> AsyncIterator[Walk]:
    async with walking(tmp_path, rate_limit_per_minute=0) as started:
        yield started


@pytest.fixture
def port(walk: Walk) -> Port:
    return Port(walk.service)


def check(answer: httpx.Response) -> None:
    """Raise AssertionError unless it is a good answer, or a refusal in the form that all have."""
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        check_problem(Answer(answer.status_code, dict(answer.headers), answer.content))
        if answer.json()["code"] in ("invalid_input", "bad_query"):
            assert answer.json()["errors"], answer.text


def json_routes() -> Iterator[Route]:
    return (route for route in WITH_BODY if route.json_only)


@pytest.mark.filterwarnings("ignore:Exception ignored in. <async_generator object ByteStream")
async def test_no_odd_json_is_an_error_of_ours_or_changes_anything(walk: Walk) -> None:
    before = await walk.service.events()
    for number, route in enumerate(json_routes()):
        headers = walk.headers(route) | {"Content-Type": "application/json"}
        for body in ODD_JSON[number % 5 :: 5]:  # all of them, on one of five routes each
            answer = await walk.http.request(route.method, walk.path(route), headers=headers, content=body)
            check(answer)
            judged = route.operation_id.startswith("validate") and answer.json().get("ok") is False
            assert answer.status_code >= 400 or judged, (route.operation_id, body[:80], answer.text)
    assert await walk.service.events() == before


_LEAVES: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        ["", "\x00", "\u202e", "cnv_", "a" * 300, "2026-11-21T00:00:00.000Z", "9999-12-31T23:59:60Z"]
    ),
)
_VALUES: Final = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


async def test_no_value_of_any_shape_in_any_field_is_an_error_of_ours(walk: Walk) -> None:
    routes = [*json_routes()]

    @budget(80)
    @given(st.sampled_from(routes), st.data())
    def run(route: Route, data: st.DataObject) -> None:
        assert route.body is not None
        names = [field.alias or name for name, field in route.body.model_fields.items()]
        named = st.dictionaries(st.sampled_from(names), _VALUES, max_size=5) if names else _VALUES
        body = orjson.dumps(_writable(data.draw(named)))
        headers = walk.headers(route) | {"Content-Type": "application/json"}
        here(lambda: _sent(walk, route.method, walk.path(route), headers, body))

    await hold(run)


def _writable(value: Any) -> Any:
    """The value, as far as JSON can write it."""
    if isinstance(value, dict):
        return {_text(name): _writable(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_writable(each) for each in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return orjson.Fragment(str(value))
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode()


async def _sent(walk: Walk, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> None:
    check(await walk.http.request(method, path, headers=headers, content=body))


_QUERY_VALUES: Final = st.one_of(
    st.sampled_from(
        [
            "",
            "0",
            "-1",
            "1e9",
            "\uff19",
            "201",
            "true",
            "null",
            "W10",
            "WzFd",
            "WzksOV0",
            "W251bGxd",
            "[]",
            "evt_",
            "\x00",
        ]
    ).map(lambda text: quote_from_bytes(text.encode())),
    st.binary(max_size=12).map(quote_from_bytes),
    st.text("%&=+;#?/\\'\"<>{}|^`~ 0aé", max_size=10).map(
        lambda text: text.replace(" ", "+").replace("#", "%23")
    ),
    st.integers(-(2**70), 2**70).map(str),
)


async def test_no_query_on_any_route_is_an_error_of_ours(walk: Walk) -> None:
    endless = {"listEvents", "followStream", "followMyEvents"}
    routes = [
        route
        for route in ROUTES  # pages for people answer in HTML
        if route.method == "GET" and route.path.startswith("/v3/") and route.operation_id not in endless
    ]

    @budget(80)
    @given(st.sampled_from(routes), st.data())
    def run(route: Route, data: st.DataObject) -> None:
        names = [field.alias or name for name, field in route.query.model_fields.items()]
        known = st.sampled_from([*names, "limit", "x", "cursor[]", ""])
        pairs = data.draw(st.lists(st.tuples(known, _QUERY_VALUES), max_size=4))
        query = "&".join(f"{name}={value}" for name, value in pairs if name != "wait")
        here(lambda: _sent(walk, "GET", f"{walk.path(route)}?{query}", walk.headers(route)))

    await hold(run)


_NAMES: Final = (
    b"Authorization",
    b"project",
    b"Idempotency-Key",
    b"X-Forwarded-For",
    b"Content-Type",
    b"Host",
    b"Forwarded",
)
_HEADER_VALUES: Final = st.one_of(
    st.binary(max_size=30).map(lambda value: value.translate(None, b"\r\n\x00")),
    st.sampled_from(
        [
            b"",
            b"Bearer",
            b"Bearer ",
            b"bearer x",
            b"Bearer " + b"a" * 9_000,
            b"Basic Og==",
            b"1.2.3.4, ::1, unknown",
        ]
    ),
    st.sampled_from(
        [b"a" * 256, b"application/json; charset=utf-16", b"application/json, text/plain", b"prj_", b"\xff"]
    ),
)


async def test_no_header_is_an_error_of_ours_or_stands_for_a_credential(walk: Walk, port: Port) -> None:
    @budget(60)
    @given(st.lists(st.tuples(st.sampled_from(_NAMES), _HEADER_VALUES), min_size=1, max_size=4))
    def run(headers: list[tuple[bytes, bytes]]) -> None:
        given_headers = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        body = b'{"contact":{"userId":"a"}}'
        head = b"POST /v3/s2s/conversations HTTP/1.1\r\nHost: x\r\nContent-Length: 26\r\n"
        found = here(lambda: port.hold(head + given_headers + b"\r\n" + body + bytes(LAST), []))
        assert found[0].status >= 400, "carried out without a credential"

    await hold(run)


def tokens(walk: Walk) -> Iterator[str]:
    """Tokens that an attacker would make from a good one, whose secret is not known."""
    good = walk.service.demo["token"]
    head, claims, signature = good.split(".")
    said = jwt.decode(good, options={"verify_signature": False})
    algorithms: list[object] = ["none", "None", "NONE", "", "HS999", "RS256", None, 1, []]
    for algorithm in algorithms:
        yield ".".join((_encoded({"alg": algorithm, "typ": "JWT"}), claims, ""))
        yield ".".join((_encoded({"alg": algorithm, "typ": "JWT"}), claims, signature))
    for more in (
        {"crit": ["exp"]},
        {"b64": False, "crit": ["b64"]},
        {"kid": "../../secret"},
        {"jwk": {"kty": "oct"}},
    ):
        yield ".".join((_encoded({"alg": "HS256", **more}), claims, signature))
    yield jwt.encode(said, "a secret of somebody else, long enough", algorithm="HS256")
    yield jwt.encode({**said, "x": "x" * 8_000}, "a secret of somebody else, long enough", algorithm="HS256")
    yield f"{head}.{claims}"
    yield f"{head}.{claims}.{signature}.{signature}"
    yield f"{head}..{signature}"
    yield f"{head}.{_encoded({**said, 'exp': 1e300})}.{signature}"
    yield f"{head}.{claims}.{signature[:-2]}"
    yield f"{head}.{claims}.{signature[:-1]}{'A' if signature[-1] != 'A' else 'E'}x"
    yield "." * 5_000
    yield "e" * 9_000


def _encoded(value: object) -> str:
    return jwt.utils.base64url_encode(orjson.dumps(value)).decode()


async def test_no_token_but_the_one_that_was_issued_is_taken(walk: Walk) -> None:
    project = walk.service.demo["projectId"]
    for token in tokens(walk):
        answer = await walk.http.get(
            "/v3/tickets", headers={"Authorization": f"Bearer {token}", "project": project}
        )
        assert answer.status_code == 401, token[:200]
        check(answer)


_PARTS: Final = (
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello\r\n',
    b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nhello\r\n',
    b"--x\r\nContent-Disposition: form-data; name=file; filename*=UTF-8''%ff%00\r\n\r\nhello\r\n",
    b'--x\r\nContent-Disposition: form-data; name="other"\r\n\r\n',
    b"--x\r\n\r\n\r\n",
    b"--x\r\n" + b"A: " + b"a" * 20_000 + b"\r\n\r\n",
    b"--x\r\nnocolon\r\n\r\nhello\r\n",
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="../../\x00"\r\nContent-Type: text/html\r\n\r\n<p>\r\n',
    b"--x--\r\n",
    b"--x--",
    b"--x",
    b"\r\n",
    b"\x00\xff",
)
_TYPES: Final = (
    "multipart/form-data; boundary=x",
    'multipart/form-data; boundary="x"',
    "multipart/form-data; boundary=",
    "multipart/form-data",
    "multipart/mixed; boundary=x",
    "multipart/form-data; boundary=" + "x" * 300,
    "multipart/form-data; boundary=x; boundary=y",
)


async def test_no_form_is_an_error_of_ours(walk: Walk) -> None:
    headers = {"Authorization": f"Bearer {walk.service.demo['serverKey']}"}

    @budget(50)
    @given(st.sampled_from(_TYPES), st.lists(st.sampled_from(_PARTS), max_size=5))
    def run(kind: str, parts: Sequence[bytes]) -> None:
        here(lambda: _sent(walk, "POST", "/v3/uploads", headers | {"Content-Type": kind}, b"".join(parts)))

    await hold(run)
