"""The files of uploads in a bucket of S3 or of a compatible server, through obstore (ADR 17).

Objects are named `<prefix>/<project>/<aa>/<sha256>.<entry>`. A name is never reused, neither for another content nor for
a second upload of the same one, so delayed writes and removals are harmless.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import IO, TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

import obstore
from obstore import exceptions
from obstore.store import S3Store

from deskwire.engine.uploads.ports import FileContent
from deskwire.storage.upload_buffer import UploadBuffer

if TYPE_CHECKING:  # names of its types alone
    from obstore.store import ClientConfig, RetryConfig, S3Config

REQUEST_BYTES_MAX: Final = 8 << 20
"""Maximum bytes of a file in a single request; larger files are uploaded in parts of this size."""

OLD: Final = timedelta(days=1)
"""Minimum age of an object that may be an orphan of a crash."""

_NAME: Final = re.compile(r"(\d+)/[0-9a-f]{2}/([0-9a-f]{64})\.(\d+)")
_RETRY: Final[RetryConfig] = {"max_retries": 2, "retry_timeout": timedelta(seconds=10)}
_RIGHTS: Final = "s3:PutObject, s3:GetObject, s3:DeleteObject and s3:ListBucket"


class S3Files:
    """Implements `uploads.ports.Files` in a bucket.

    Credentials and region come from AWS_ACCESS_KEY_ID and its siblings, or from the role of the machine.

    Args:
        url: `s3://bucket/prefix`, with `?endpoint=https://…` for a server that is not Amazon's, and `&region=…`.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        options = {name: values[0] for name, values in parse_qs(parts.query).items()}
        endpoint = options.get("endpoint")
        config: S3Config = {"bucket": parts.netloc}
        if endpoint is not None:
            config["endpoint"] = endpoint
        if "region" in options or endpoint is not None:  # other servers accept any region
            config["region"] = options.get("region", "us-east-1")
        client: ClientConfig = {
            "connect_timeout": timedelta(seconds=5),
            "timeout": timedelta(seconds=60),
            "allow_http": endpoint is not None and endpoint.startswith("http:"),
        }
        path = parts.path.strip("/")
        self._bucket = parts.netloc
        self._where = f"s3://{parts.netloc}/{path}" + (f" at {endpoint}" if endpoint else "")
        with self._readable_errors():
            self._store = S3Store(
                prefix=path or None, client_options=client, retry_config=_RETRY, config=config
            )

    def clear_drafts(self) -> None:
        """See `Files.clear_drafts`. There are no drafts; this checks that the bucket exists."""
        with self._readable_errors():
            for _ in obstore.list(self._store, chunk_size=1):
                return

    def draft(self) -> UploadBuffer:
        """See `Files.draft`."""
        return UploadBuffer(self._put)

    def size(self, content: FileContent) -> int | None:
        """See `Files.size`."""
        with self._readable_errors():
            try:
                return obstore.head(self._store, _name(content))["size"]
            except (exceptions.NotFoundError, FileNotFoundError):
                return None

    def read(self, content: FileContent, start: int, length: int) -> bytes:
        """See `Files.read`."""
        with self._readable_errors():
            found = obstore.get(self._store, _name(content), options={"range": (start, start + length)})
            return bytes(found.bytes())

    def remove(self, content: FileContent) -> None:
        """See `Files.remove`. A bucket with versioning retains older versions."""
        with self._readable_errors():
            try:
                obstore.delete(self._store, _name(content))
            except (exceptions.NotFoundError, FileNotFoundError):
                return

    def contents(self) -> Iterator[FileContent]:
        """See `Files.contents`."""
        old = datetime.now(UTC) - OLD
        with self._readable_errors():
            for batch in obstore.list(self._store, chunk_size=1_000):
                for each in batch:
                    match = _NAME.fullmatch(each["path"])
                    if match is not None and each["last_modified"] < old:
                        yield FileContent(int(match[1]), match[2], int(match[3]))

    def close(self) -> None:
        """See `Files.close`. Idle connections time out."""

    def _put(self, content: FileContent, file: IO[bytes], size: int) -> None:
        if self.size(content) == size:
            return
        with self._readable_errors():
            if size > REQUEST_BYTES_MAX:
                obstore.put(
                    self._store, _name(content), file, use_multipart=True, chunk_size=REQUEST_BYTES_MAX
                )
                return
            try:
                obstore.put(self._store, _name(content), file.read(), use_multipart=False, mode="create")
            except exceptions.AlreadyExistsError:
                return

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        """Convert errors of the bucket to OSError with a message that gives the remedy."""
        try:
            yield
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            message = f"{self._where} refuses the keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to ones with {_RIGHTS}"
            raise PermissionError(errno.EACCES, message) from error
        except (exceptions.BaseError, FileNotFoundError) as error:
            if "NoSuchBucket" in str(error):
                message = f"there is no bucket {self._bucket}: create it, or correct DESKWIRE_FILES"
            elif isinstance(error, (exceptions.NotFoundError, FileNotFoundError)):
                message = f"an object of {self._where} is gone"
            else:
                message = f"{self._where} can't be used ({_first_line(error)}): check that it can be reached from here"
            raise OSError(errno.EIO, message) from error


def _name(content: FileContent) -> str:
    return f"{content.project}/{content.sha256[:2]}/{content.sha256}.{content.entry}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:300]
