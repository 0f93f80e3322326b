"""The file stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from deskwire.engine.uploads.ports import FileContent, Files
from deskwire.storage.files import DiskFiles
from deskwire.storage.postgres.files import DatabaseFiles
from deskwire.storage.s3 import S3Files
from tests.support.postgres import fresh_database
from tests.support.s3 import MISSING, has_s3, s3_server

Place = Callable[[str], FileContent]


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of an S3 server; it needs keys, but accepts any."""
    if not has_s3():
        pytest.skip(MISSING)
    with pytest.MonkeyPatch.context() as patch, s3_server(tmp_path_factory.mktemp("s3")) as address:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield address


class Shelves:
    """A file store, and the contents that may be stored there."""

    def __init__(self, files: Files, entry: Callable[[FileContent], int]) -> None:
        self.files = files
        self._entry = entry

    def content(self, sha256: str, project: int = 1) -> FileContent:
        """Return a content with a new entry, if the store needs entries."""
        content = FileContent(project, sha256)
        return FileContent(project, sha256, self._entry(content))

    def put(self, data: bytes, project: int = 1) -> FileContent:
        """Store a file; return its content."""
        draft = self.files.draft()
        draft.write(data)
        content = self.content(draft.finish(), project)
        draft.keep(content)
        draft.discard()
        return content


@pytest.fixture(params=["disk", "database", pytest.param("s3", marks=pytest.mark.s3)])
def shelves(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelves]:
    """Yield each of the file stores."""
    with ExitStack() as stack:
        if request.param == "disk":
            yield Shelves(_cleared(DiskFiles(tmp_path)), lambda _: 0)
        elif request.param == "database":
            url = stack.enter_context(fresh_database())
            connection = stack.enter_context(psycopg.connect(url, autocommit=True))
            files = DatabaseFiles(url)
            stack.callback(files.close)
            yield Shelves(_cleared(files), lambda content: _entry(connection, content))
        else:
            yield Shelves(_cleared(stack.enter_context(in_bucket(request, tmp_path.name))), lambda _: 1)


@contextmanager
def in_bucket(request: pytest.FixtureRequest, prefix: str) -> Iterator[S3Files]:
    """Yield files in the bucket of the S3 server, under a new prefix."""
    yield S3Files(f"s3://uploads/{prefix}?endpoint={request.getfixturevalue('s3')}")


def _cleared(files: Files) -> Files:
    files.clear_drafts()
    return files


def _entry(connection: psycopg.Connection[tuple[int]], content: FileContent) -> int:
    row = connection.execute(
        "INSERT INTO contents (project, sha256, made_at, going) VALUES (%s, %s, 0, 0) "
        "ON CONFLICT (project, sha256) WHERE going = 0 DO UPDATE SET going = 0 RETURNING rowid",
        (content.project, content.sha256),
    ).fetchone()
    assert row is not None
    return row[0]
