"""Uploads: files that are uploaded once, and downloaded by signed URLs (decisions 7)."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import trio

from deskwire.engine.audit.audited_changes import deleted
from deskwire.engine.audit.trail import RecordingHook
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import NotFound
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.uploads.file_store import Job
from deskwire.engine.uploads.service import find_upload
from deskwire.engine.uploads.upload import Upload
from deskwire.http.api.calls import Answer, Call, Streamed
from deskwire.http.api.input.body_timeout import TimedBody, body_timeout_error
from deskwire.http.api.input.multipart import boundary_of, read_file
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.output.downloads import (
    UploadBody,
    content_type,
    headers_of,
    not_modified,
    requested_range,
)
from deskwire.http.api.routing import OPEN, Media, Routes, Tag, either
from deskwire.http.schemas import tickets as shapes
from deskwire.http.schemas.base import Deleted

routes = Routes(
    Tag("Uploads", "Upload files, and download them by signed URLs."),
    unrecorded="It is content: it grants nothing, and is not a setting.",
)
_SEND: Final = either("conversations.reply")


class LinkQuery(Query):
    """The parameters of a signed URL, which only the service makes. Others are ignored, such as `utm_source`."""

    lenient = True

    expires: str | None = None
    signature: str | None = None


@routes.add(
    "POST",
    "/uploads",
    _SEND,
    operation_id="uploadFile",
    streamed=True,
    limit="upload_body_bytes",
    answer=shapes.Upload,
    errors=(
        "malformed_body",
        "body_timeout",
        "body_too_large",
        "unsupported_media_type",
        "invalid_input",
        "upload_quota_exceeded",
        "uploads_busy",
    ),
    idempotent=True,
)
async def upload_file(call: Call[Body, Query]) -> Answer:
    """Upload a file as `multipart/form-data`, in the field `file`.

    The media type is detected from the bytes. A file that no message refers to within a day is deleted.
    """
    services, limits = call.services, call.services.limits
    boundary = boundary_of(call.incoming.headers)
    with trio.move_on_after(limits.upload_timeout_s):
        async with services.uploads.receiving(call.project) as reception:
            body = TimedBody(call.incoming.body, limits.body_timeout_s)
            filename = await read_file(body, boundary, limits.upload_body_bytes, reception.write)
            return upload_view(call, await reception.finish(filename, partial(kept_upload, call)))
    raise body_timeout_error(limits.upload_timeout_s)


@routes.add(
    "GET",
    "/uploads/<upload_id>",
    either("conversations.read"),
    operation_id="getUpload",
    answer=shapes.Upload,
)
async def get_upload(call: Call[Body, Query]) -> Answer:
    """Fetch an upload, with a new URL of its file."""
    project, upload_id = call.project.rowid, call.path["upload_id"]
    return upload_view(
        call,
        await call.services.store.read(InlineQuery(lambda reader: find_upload(reader, project, upload_id))),
    )


@routes.add(
    "DELETE",
    "/uploads/<upload_id>",
    _SEND,
    operation_id="deleteUpload",
    answer=Deleted,
    errors=("upload_attached",),
    records=("upload.deleted",),
)
async def delete_upload(call: Call[Body, Query]) -> Answer:
    """Delete an upload that no message refers to. Otherwise it is deleted with the last conversation that does: 409."""
    recording: RecordingHook[Upload] = RecordingHook(
        call.origin, lambda gone: (deleted("upload", gone.id, call.project.rowid, bytes=gone.size),)
    )
    upload = await call.services.uploads.remove(call.project, call.path["upload_id"], recording)
    return {"id": upload.id, "deleted": True}


@routes.add(
    "GET",
    "/uploads/<upload_id>/<name>",
    OPEN,
    operation_id="fetchFile",
    query=LinkQuery,
    answer=Media("*/*", statuses=(200, 206), bare=(304,)),
    errors=("link_invalid", "link_expired", "upload_not_found", "range_not_satisfiable", "storage_failed"),
)
async def fetch_file(call: Call[Body, LinkQuery]) -> Answer:
    """Download a file by its signed URL, whole or in part. `Range` and `If-None-Match` are supported."""
    uploads, headers = call.services.uploads, call.incoming.headers
    upload_id, name = call.path["upload_id"], call.path["name"]
    uploads.links.check(upload_id, name, call.query.expires, call.query.signature, call.services.clock())
    upload = await call.services.store.read(InlineQuery(lambda reader: reader.upload(None, upload_id)))
    if upload is None or await uploads.size(upload) != upload.size:
        raise NotFound("This file has been removed.", code="upload_not_found")
    sent_headers = dict(headers_of(upload))
    if not_modified(headers, upload):
        return Streamed(UploadBody(uploads, upload, 0, 0), content_type(upload), sent_headers, 304)
    part = requested_range(headers, upload)
    start, end = part or (0, upload.size)
    sent_headers["Content-Length"] = str(end - start)
    if part is not None:
        sent_headers["Content-Range"] = f"bytes {start}-{end - 1}/{upload.size}"
    shown = start if call.incoming.method == "HEAD" else end
    return Streamed(
        UploadBody(uploads, upload, start, shown), content_type(upload), sent_headers, 206 if part else 200
    )


def kept_upload(call: Call[Any, Any], job: Job, upload: Upload) -> Job:
    """Return the commit of an upload. Repeated requests are recognised by name and content, because the delimiters of forms differ."""
    if call.once is None:
        return job
    once = call.once.with_body(upload.name.encode(), upload.sha256.encode())
    return once.around(job, lambda _: upload_view(call, upload))


def upload_view(call: Call[Any, Any], upload: Upload) -> dict[str, Any]:
    """Return the upload object. Its URL is valid from the time of the upload."""
    url, expires = call.services.uploads.links.url(upload.id, upload.name, upload.created_at)
    return {
        "id": upload.id,
        "name": upload.name,
        "type": upload.type,
        "size": upload.size,
        "url": url,
        "expiresAt": iso(expires),
    }
