"""The documents about the API that the service serves. Their makers are imported on the first request, in a thread."""

from __future__ import annotations

from deskwire.http.api.output.static import Static


def openapi() -> Static:
    """Return the OpenAPI document."""
    from deskwire.http.description.openapi.document import description

    return description()


def asyncapi() -> Static:
    """Return the AsyncAPI document."""
    from deskwire.http.description.asyncapi.document import description

    return description()


def errors() -> Static:
    """Return the page of error codes."""
    from deskwire.http.description.errors_page import page

    return page()


def permissions() -> bytes:
    """Return the table of permissions, as JSON."""
    from deskwire.http.description.permissions import served

    return served()
