"""The documents of a backup: versions, checksums, counts, and a seal that only the installation's secret makes."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Any, Final, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from deskwire.engine.core.secret import derived_key
from deskwire.storage.sqlite.backup.snapshot import CopyError

FORMAT: Final = 1
MISSING_SHOWN: Final = 1_000
"""Files whose names the manifest has, of those that were not there."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class _Document(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, strict=True)

    def encoded(self) -> bytes:
        """Return the document's bytes in the archive."""
        return orjson.dumps(self.model_dump(by_alias=True), option=orjson.OPT_INDENT_2) + b"\n"


DocumentT = TypeVar("DocumentT", bound=_Document)


class Head(_Document):
    """The first document: all that a reader has to know before it reads on.

    Args:
        version: of the program that made it.
        created_at: ISO 8601.
        migrations: of the database, oldest first.
    """

    format: int
    version: str
    created_at: str
    migrations: list[str]


class Manifest(_Document):
    """The list of everything that must be in the archive.

    Args:
        secret: whether the installation's secret is in it.
        secret_id: tells the secret from others, and nothing about it.
        files, file_bytes: of the uploads.
        file_list: SHA-256 of their names, a line each, in the archive's order.
        missing: names of files that a row has and the disk had not, the first of them.
        rows: of each table.
        last_event: id of the newest event that is stored.
    """

    database_bytes: Count
    database_sha256: Digest
    files: Count
    file_bytes: Count
    file_list: Digest
    missing: list[str]
    missing_files: Count
    secret: bool
    secret_id: str | None
    rows: dict[str, int]
    last_event: str | None


def head_of(data: bytes) -> Head:
    """Read the head. Raises CopyError if it is none, or of a format that this program does not know."""
    said: Any = _json(data)
    if isinstance(said, dict) and isinstance(said.get("format"), int) and said["format"] != FORMAT:
        raise CopyError(
            f"It has format {said['format']}, made by Deskwire {said.get('version')}; "
            f"this version reads format {FORMAT}."
        )
    return _checked(Head, said)


def manifest_of(data: bytes) -> Manifest:
    """Read the manifest. Raises CopyError if it is none."""
    return _checked(Manifest, _json(data))


ANY_SECRET: Final = "any"
"""The id of a database whose secret was given up: the next start stores that of the secret that it has."""


def secret_id(secret: str) -> str:
    """Return an id that tells a secret from others and reveals nothing about it."""
    return derived_key(secret, "backup/id").hex()[:16]


def fitting(known: Sequence[str], wanted: str | None) -> str | None:
    """Return the secret that `secret_id` names so; None if it is not known."""
    return next((each for each in known if hmac.compare_digest(secret_id(each), wanted or "")), None)


def seal(secret: str, head: bytes, manifest: bytes) -> bytes:
    """Return the line that proves head and manifest to be as they were written."""
    key = derived_key(secret, "backup/seal")
    return hmac.digest(key, sha256(head).digest() + manifest, "sha256").hex().encode() + b"\n"


def is_sealed(secret: str, head: bytes, manifest: bytes, given: bytes) -> bool:
    """Say whether the seal is the one that this secret makes of the documents."""
    return hmac.compare_digest(seal(secret, head, manifest), given)


def _json(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise CopyError("A document in it is not JSON.") from error


def _checked(model: type[DocumentT], said: Any) -> DocumentT:
    try:
        return model.model_validate(said)
    except ValidationError as error:
        problems = f"What it says about itself is not as it should be: {error.error_count()} problems."
        raise CopyError(problems) from error
