"""The documents of a backup: versions, checksums, counts, and an HMAC with the installation's secret."""

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
"""Maximum names of missing files in the manifest."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class _Document(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, strict=True)

    def encoded(self) -> bytes:
        """Return the document as bytes for the archive."""
        return orjson.dumps(self.model_dump(by_alias=True), option=orjson.OPT_INDENT_2) + b"\n"


DocumentT = TypeVar("DocumentT", bound=_Document)


class Head(_Document):
    """The first document, which a reader needs for the rest.

    Args:
        version: of the program that made the backup.
        created_at: ISO 8601.
        migrations: of the database, oldest first.
    """

    format: int
    version: str
    created_at: str
    migrations: list[str]


class Manifest(_Document):
    """The list of everything that the archive must contain.

    Args:
        secret: whether the archive contains the installation's secret.
        secret_id: identifies the secret without revealing it.
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
    """Parse the head. Raises CopyError if it is malformed, or has an unknown format."""
    document: Any = _json(data)
    if (
        isinstance(document, dict)
        and isinstance(document.get("format"), int)
        and document["format"] != FORMAT
    ):
        raise CopyError(
            f"It has format {document['format']}, made by Deskwire {document.get('version')}; "
            f"this version reads format {FORMAT}."
        )
    return _checked(Head, document)


def manifest_of(data: bytes) -> Manifest:
    """Parse the manifest. Raises CopyError if it is malformed."""
    return _checked(Manifest, _json(data))


ANY_SECRET: Final = "any"
"""The id in a database whose secret is lost: the next start replaces it with the id of its own secret."""


def secret_id(secret: str) -> str:
    """Return an id of a secret that reveals nothing about it."""
    return derived_key(secret, "backup/id").hex()[:16]


def fitting(known: Sequence[str], wanted: str | None) -> str | None:
    """Return the known secret with this id; None without one."""
    return next((each for each in known if hmac.compare_digest(secret_id(each), wanted or "")), None)


def seal(secret: str, head: bytes, manifest: bytes) -> bytes:
    """Return the HMAC line that authenticates head and manifest."""
    key = derived_key(secret, "backup/seal")
    return hmac.digest(key, sha256(head).digest() + manifest, "sha256").hex().encode() + b"\n"


def is_sealed(secret: str, head: bytes, manifest: bytes, given: bytes) -> bool:
    """Return whether the HMAC line matches the documents."""
    return hmac.compare_digest(seal(secret, head, manifest), given)


def _json(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise CopyError("A document in it is not JSON.") from error


def _checked(model: type[DocumentT], document: Any) -> DocumentT:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        problems = f"The description in the backup is invalid: {error.error_count()} problems."
        raise CopyError(problems) from error
