"""The documents about the API that the service hands out: what makes them is loaded when one is asked for, in a thread."""

from __future__ import annotations

from deskwire.http.api.output.static import Static


def openapi() -> Static:
    """Return the description of the API."""
    from deskwire.http.description.openapi.document import description

    return description()


def asyncapi() -> Static:
    """Return the description of its events."""
    from deskwire.http.description.asyncapi.document import description

    return description()


def errors() -> Static:
    """Return the page of its error codes."""
    from deskwire.http.description.errors_page import page

    return page()
