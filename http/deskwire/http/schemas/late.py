"""The shapes of events for the table of routes, as functions: there is a model for each type, and only the reference shows it."""

from __future__ import annotations

from pydantic import BaseModel

from deskwire.http.schemas.base import Shape, page_of


def any_event() -> type[BaseModel]:
    """Return the shape of an event of any type."""
    from deskwire.http.schemas.extensions import AnyEvent

    return AnyEvent


def any_events() -> type[Shape]:
    """Return the shape of a page of those."""
    return page_of(any_event())


def events() -> type[Shape]:
    """Return the shape of a page of events of the contract's types."""
    from deskwire.http.schemas.events import Event

    return page_of(Event)
