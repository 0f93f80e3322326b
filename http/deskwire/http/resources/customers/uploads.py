"""Uploads of customers: files for their own messages."""

from __future__ import annotations

from functools import partial
from typing import Final

import trio

from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.body_timeout import TimedBody, body_timeout_error
from deskwire.http.api.input.multipart import OVERHEAD, boundary_of, read_file
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import Routes, customer
from deskwire.http.resources.customers.messages import require_writer, stored_contact
from deskwire.http.resources.customers.sessions import CUSTOMERS
from deskwire.http.resources.uploads import kept_upload, upload_view
from deskwire.http.schemas import tickets as shapes

FILE_BYTES_MAX: Final = 10 * 1024 * 1024

routes = Routes(CUSTOMERS, customer(), unrecorded="It is content: it grants nothing, and is not a setting.")


@routes.add(
    "POST",
    "/customer/uploads",
    operation_id="uploadMyFile",
    streamed=True,
    limit="upload_body_bytes",
    answer=shapes.Upload,
    errors=(
        "contact_blocked",
        "malformed_body",
        "body_timeout",
        "body_too_large",
        "message_required",
        "rate_limited",
        "unsupported_media_type",
        "invalid_input",
        "upload_quota_exceeded",
        "uploads_busy",
    ),
    idempotent=True,
)
async def upload_file(call: Call[Body, Query]) -> Answer:
    """Upload a file of at most 10 MiB as `multipart/form-data`, in the field `file`, for one of the customer's own messages.

    The media type is detected from the bytes. Nothing lists the file before a message refers to it; without one it is deleted
    after a day. A visitor can send files after the first message.
    """
    services, limits, contact = call.services, call.services.limits, stored_contact(call)
    await require_writer(call)
    services.customer_limits.take_upload(call.customer, call.address)
    boundary = boundary_of(call.incoming.headers)
    most = min(FILE_BYTES_MAX + OVERHEAD, limits.upload_body_bytes)
    with trio.move_on_after(limits.upload_timeout_s):
        async with services.uploads.receiving(call.project, contact.id, FILE_BYTES_MAX) as reception:
            body = TimedBody(call.incoming.body, limits.body_timeout_s)
            filename = await read_file(body, boundary, most, reception.write)
            return upload_view(call, await reception.finish(filename, partial(kept_upload, call)))
    raise body_timeout_error(limits.upload_timeout_s)
