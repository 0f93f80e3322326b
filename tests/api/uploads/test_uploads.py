"""Uploads over HTTP: sent, fetched by signed URLs, refused, and removed (decisions 7; ADR 17)."""

from __future__ import annotations

import hashlib
import json
import resource
from collections.abc import Iterable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import trio

from tests.api.conventions.test_conventions import foreign_key
from tests.support.api.planted_texts import files_below
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452") + bytes(range(256)) * 40
FILES = {"file": ("a photo.png", PNG, "text/html")}


async def send(service: Service, content: bytes = PNG, name: str = "photo.png") -> dict[str, Any]:
    """Upload a file; return the answer."""
    answer = await service.http.post("/uploads", files={"file": (name, content, "x/y")})
    assert answer.status_code == 200, answer.text
    upload: dict[str, Any] = answer.json()
    return upload


async def send_chunks(service: Service, content: Iterable[bytes]) -> tuple[int, bytes]:
    """Upload a file of unannounced length for as long as the service accepts it; return status and body."""
    head = (
        "POST /v3/uploads HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
        f"Authorization: Bearer {service.demo['serverKey']}\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\n\r\n"
    )
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    chunks = (b"%x\r\n%s\r\n" % (len(each), each) for each in content)
    return await service.talk(head.encode() + b"%x\r\n%s\r\n" % (len(part), part), chunks)


def on_disk(service: Service) -> list[Path]:
    """Return every file below the folder of the uploads."""
    return list(files_below(service.directory / "uploads"))


async def gone(service: Service, *paths: Path) -> None:
    """Return once the files are removed, which happens after an erasure's commit."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while any(path.exists() for path in paths):  # noqa: ASYNC110  # files do not notify
            await trio.sleep(0.01)  # poll: there is no notification


@pytest.fixture
async def anybody() -> Any:
    async with httpx.AsyncClient(timeout=HANG_TIMEOUT_S) as client:
        yield client


async def test_upload_is_fetched_by_its_url_without_a_credential(
    service: Service, anybody: httpx.AsyncClient
) -> None:
    sent = await service.http.post("/uploads", files=FILES)
    assert sent.status_code == 200, sent.text
    upload = sent.json()
    assert upload.keys() == {"id", "name", "type", "size", "url", "expiresAt"}
    assert upload["id"].startswith("upl_")
    assert (upload["name"], upload["type"], upload["size"]) == ("a photo.png", "image/png", len(PNG))
    assert upload["url"].startswith(f"{service.url}/v3/uploads/{upload['id']}/a%20photo.png?expires=")
    answer = await anybody.get(upload["url"])
    assert answer.status_code == 200
    assert answer.content == PNG
    assert answer.headers["Content-Type"] == "image/png"
    assert answer.headers["Content-Length"] == str(len(PNG))
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; base-uri 'none'; sandbox"
    assert answer.headers["Content-Disposition"] == (
        "inline; filename=\"a photo.png\"; filename*=UTF-8''a%20photo.png"
    )


async def test_agent_may_upload_files_and_a_reader_may_not(service: Service) -> None:
    from tests.api.conversations.test_dashboard import member

    assert (await service.dashboard.post("/uploads", files=FILES)).status_code == 200
    headers = {"Authorization": f"Bearer {member(service, 'viewer')}"}
    refused = await service.dashboard.post("/uploads", files=FILES, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")


async def test_a_page_with_a_program_is_never_shown_as_one(
    service: Service, anybody: httpx.AsyncClient
) -> None:
    for content in (
        b"<!DOCTYPE html><script>alert(1)</script>",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    ):
        upload = await send(service, content, "page.html")
        answer = await anybody.get(upload["url"])
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    answer = await anybody.get(
        (await send(service, b"%PDF-1.7\nx", 'x"; filename=evil.exe\r\nA: b.pdf'))["url"]
    )
    assert answer.headers["Content-Type"] == "application/pdf"
    assert answer.headers["Content-Disposition"].startswith("attachment; filename=")
    assert "A" not in answer.headers


async def test_an_altered_or_expired_url_is_refused(service: Service, anybody: httpx.AsyncClient) -> None:
    url = (await send(service))["url"]
    other = (await send(service, b"another"))["id"]
    upload_id = urlsplit(url).path.split("/")[3]
    expires = parse_qs(urlsplit(url).query)["expires"][0]
    altered = [
        url.replace(upload_id, other),
        url.replace(f"expires={expires}", f"expires={int(expires) + 1}"),
        url.replace("photo.png", "photo.exe"),
        url[:-1] + ("A" if url[-1] != "A" else "B"),
        url.partition("&signature")[0],
        url.partition("?")[0],
        url.replace(f"expires={expires}", "expires=x"),
    ]
    for each in altered:
        answer = await anybody.get(each)
        assert (answer.status_code, answer.json()["code"]) == (403, "link_invalid"), each
    assert (await anybody.get(url)).status_code == 200


@pytest.mark.parametrize(
    "added", ["utm_source=mail&utm_medium=x", "fbclid=IwAR", "=", "a&a&a", "gclid=%ff", "Expires=1&q=%00"]
)
async def test_parameters_that_other_programs_add_to_a_signed_url_are_ignored(
    service: Service, anybody: httpx.AsyncClient, added: str
) -> None:
    url = (await send(service))["url"]
    assert (await anybody.get(f"{url}&{added}")).status_code == 200
    assert (await anybody.get(url.replace("?", f"?{added}&"))).status_code == 200
    twice = await anybody.get(f"{url}&signature=x")
    assert (twice.status_code, twice.json()["code"]) == (400, "bad_query")


async def test_a_url_is_good_for_as_long_as_is_set(tmp_path: Path, anybody: httpx.AsyncClient) -> None:
    async with running(tmp_path, upload_url_s=0.0) as service:
        answer = await anybody.get((await send(service))["url"])
        assert (answer.status_code, answer.json()["code"]) == (403, "link_expired")


@pytest.mark.parametrize(
    ("asked", "part", "told"),
    [
        ("bytes=0-9", slice(0, 10), "bytes 0-9/10256"),
        ("bytes=10250-", slice(10250, None), "bytes 10250-10255/10256"),
        ("bytes=-6", slice(-6, None), "bytes 10250-10255/10256"),
        ("bytes=10250-99999", slice(10250, None), "bytes 10250-10255/10256"),
    ],
)
async def test_a_part_can_be_fetched(
    service: Service, anybody: httpx.AsyncClient, asked: str, part: slice, told: str
) -> None:
    url = (await send(service))["url"]
    answer = await anybody.get(url, headers={"Range": asked})
    assert answer.status_code == 206
    assert answer.content == PNG[part]
    assert answer.headers["Content-Range"] == told


@pytest.mark.parametrize("asked", ["bytes=99999-", "bytes=-0", "bytes=x", "bytes=9-2"])
async def test_range_beyond_the_file_is_refused(
    service: Service, anybody: httpx.AsyncClient, asked: str
) -> None:
    answer = await anybody.get((await send(service))["url"], headers={"Range": asked})
    assert (answer.status_code, answer.json()["code"]) == (416, "range_not_satisfiable")
    assert answer.headers["Content-Range"] == f"bytes */{len(PNG)}"


@pytest.mark.parametrize(
    "headers", [{"Range": "bytes=0-1,4-5"}, {"Range": "lines=1-2"}, {"Range": "bytes=0-1", "If-Range": '"x"'}]
)
async def test_unsupported_range_is_answered_with_the_whole_file(
    service: Service, anybody: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    answer = await anybody.get((await send(service))["url"], headers=headers)
    assert (answer.status_code, answer.content) == (200, PNG)


async def test_head_and_a_known_etag_save_the_bytes(service: Service, anybody: httpx.AsyncClient) -> None:
    url = (await send(service))["url"]
    head = await anybody.head(url)
    assert (head.status_code, head.headers["Content-Length"], head.content) == (200, str(len(PNG)), b"")
    etag = head.headers["ETag"]
    assert etag == f'"{hashlib.sha256(PNG).hexdigest()}"'
    again = await anybody.get(url, headers={"If-None-Match": f'"x", W/{etag}'})
    assert (again.status_code, again.content) == (304, b"")
    ranged = await anybody.get(url, headers={"Range": "bytes=0-1", "If-Range": etag})
    assert (ranged.status_code, ranged.content) == (206, PNG[:2])


async def test_every_problem_of_a_form_is_named(service: Service) -> None:
    form: list[tuple[str, Any]] = [
        ("file", (None, b"no name")),
        ("note", (None, b"x")),
        ("file", ("a.txt", b"a")),
        ("file", ("b.txt", b"b")),
        ("a/b", ("c.txt", b"c")),
    ]
    answer = await service.http.post("/uploads", files=form)
    assert answer.status_code == 422
    found = [(each["pointer"], each["code"]) for each in answer.json()["errors"]]
    assert found == [
        ("/file", "invalid"),
        ("/note", "unknown_field"),
        ("/file", "repeated"),
        ("/a~1b", "unknown_field"),
    ]
    empty = await service.http.post("/uploads", files={"file": ("a.txt", b"")})
    assert empty.json()["errors"] == [
        {"in": "body", "pointer": "/file", "code": "too_short", "message": "The file is empty."}
    ]
    assert on_disk(service) == []


async def test_a_file_name_with_u0000_is_refused_however_it_is_written(service: Service) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    for name in (b'filename="a\0b.txt"', b"filename*=UTF-8''a%00b.txt"):
        form = b'--b\r\nContent-Disposition: form-data; name="file"; ' + name + b"\r\n\r\nx\r\n--b--\r\n"
        answer = await service.http.post("/uploads", content=form, headers=kind)
        assert answer.status_code == 422, answer.text
        found = [(each["pointer"], each["code"]) for each in answer.json()["errors"]]
        assert found == [("/file", "nul_character")]
    assert on_disk(service) == []


async def test_a_form_without_a_file_or_an_end_is_refused(service: Service) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    for content, status, code in (
        (b"--b--\r\n", 422, "invalid_input"),
        (b"", 400, "malformed_body"),
        (
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhalf',
            400,
            "malformed_body",
        ),
        (b"--b\r\nX: y\r\n\r\nz\r\n--b--\r\n", 400, "malformed_body"),
        (b"--b\r\n" + b"X" * 400_000, 400, "malformed_body"),
    ):
        answer = await service.http.post("/uploads", content=content, headers=kind)
        assert (answer.status_code, answer.json()["code"]) == (status, code), content[:20]
    for kind_of in ("application/json", "multipart/mixed; boundary=b"):
        answer = await service.http.post("/uploads", content=b"{}", headers={"Content-Type": kind_of})
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    answer = await service.http.post("/uploads", content=b"", headers={"Content-Type": "multipart/form-data"})
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_body")
    assert on_disk(service) == []


@pytest.mark.sqlite  # counts the files of the directory: with PostgreSQL they are rows
async def test_too_large_file_is_refused_during_upload_and_leaves_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, upload_limit_bytes=100_000) as service:
        await send(service, b"x" * 100_000)
        (kept,) = on_disk(service)

        status, body = await send_chunks(service, repeat(b"y" * 10_000))
        assert (status, json.loads(body)["code"]) == (413, "body_too_large")
        assert on_disk(service) == [kept]


@pytest.mark.sqlite  # counts the files of the directory: with PostgreSQL they are rows
async def test_the_same_content_is_kept_once_for_each_project(service: Service, tmp_path: Path) -> None:
    first, second = await send(service), await send(service, name="again.png")
    assert first["id"] != second["id"]
    (kept,) = on_disk(service)
    assert kept.name == hashlib.sha256(PNG).hexdigest()
    assert kept.read_bytes() == PNG
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.sqlite  # counts the files of the directory: with PostgreSQL they are rows
async def test_the_quota_counts_each_content_once(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        path = f"/projects/{service.demo['projectId']}"
        changed = await service.dashboard.patch(path, json={"settings": {"uploadQuotaBytes": 100}})
        assert changed.status_code == 200, changed.text
        for content in (b"a" * 60, b"a" * 60, b"b" * 40):
            await send(service, content)
        refused = await service.http.post("/uploads", files={"file": ("c", b"c")})
        assert (refused.status_code, refused.json()["code"]) == (409, "upload_quota_exceeded")
        assert len(on_disk(service)) == 2


@pytest.fixture
def small_disk() -> Iterator[None]:
    """Let no file grow beyond 8 MiB, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_full_disk_is_reported_and_leaves_nothing(service: Service, small_disk: None) -> None:
    status, body = await send_chunks(service, repeat(b"x" * 60_000, 160))
    assert (status, json.loads(body)["code"]) == (503, "storage_failed")
    assert on_disk(service) == []
    await send(service)


@pytest.mark.sqlite  # counts the files of the directory: with PostgreSQL they are rows
async def test_client_that_disconnects_during_upload_leaves_nothing(service: Service) -> None:
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    head = (
        "POST /v3/uploads HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"
        f"Authorization: Bearer {service.demo['serverKey']}\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\n\r\n"
        '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    )
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        await stream.send_all(head.encode() + b"x" * 50_000)
        with trio.fail_after(HANG_TIMEOUT_S):
            while not on_disk(service):  # noqa: ASYNC110  # files do not notify
                await trio.sleep(0.01)  # poll: there is no notification
        drafts = on_disk(service)
    await gone(service, *drafts)


@pytest.mark.sqlite  # counts the files of the directory: with PostgreSQL they are rows
async def test_crash_between_file_and_row_is_repaired_at_the_next_start(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        await send(service)
        (kept,) = on_disk(service)
    orphan = kept.parents[1] / "ab" / ("ab" + "0" * 62)
    orphan.parent.mkdir()
    orphan.write_bytes(b"never committed")
    draft = kept.parents[2] / "drafts" / "half"
    draft.write_bytes(b"half")
    async with running(tmp_path) as service:
        with trio.fail_after(HANG_TIMEOUT_S):
            while on_disk(service) != [kept]:  # noqa: ASYNC110  # files do not notify
                await trio.sleep(0.01)  # poll: there is no notification


@pytest.mark.sqlite  # counts the files of the directory: with PostgreSQL they are rows
async def test_unattached_upload_expires(tmp_path: Path) -> None:
    async with running(tmp_path, upload_unattached_s=0.2, retention_interval_s=0.05) as service:
        kept = await send(service, b"kept")
        conversation = await service.create(message={"attachments": [kept["id"]]})
        lost = await send(service, b"lost")
        await gone(service, *(path for path in on_disk(service) if path.read_bytes() == b"lost"))
        answer = await service.http.post(
            f"/s2s/conversations/{conversation['id']}/messages", json={"attachments": [lost["id"]]}
        )
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (422, "unknown")
        async with httpx.AsyncClient() as anybody:
            assert (await anybody.get(lost["url"])).json()["code"] == "upload_not_found"
            assert (await anybody.get(kept["url"])).content == b"kept"


async def test_another_projects_upload_is_unknown(service: Service, tmp_path: Path) -> None:
    upload = await send(service)
    key = await foreign_key(service.directory)
    body = {"contact": {"userId": "u"}, "message": {"attachments": [upload["id"]]}}
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as foreign:
        answer = await foreign.post(f"{service.url}/v3/s2s/conversations", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/message/attachments/0"


async def test_stalled_download_blocks_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, stream_write_timeout_s=0.3) as service:
        upload = await send(service, bytes(8 << 20))
        parts = urlsplit(upload["url"])
        async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 0) as stream:
            stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, 4096)
            await stream.send_all(f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert (await service.http.get("/s2s/project")).status_code == 200
            received = 0
            with trio.fail_after(HANG_TIMEOUT_S):
                await trio.sleep(1)  # longer than a write may take
                try:
                    while data := await stream.receive_some():
                        received += len(data)
                except trio.BrokenResourceError:
                    pass
        assert received < upload["size"]
