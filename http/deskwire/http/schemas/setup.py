"""The first steps of a project."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.engine.accounts.setup import Step
from deskwire.http.schemas.base import Shape


class SetupStep(Shape):
    """A first step, and whether it is done.

    `chat`: a customer has opened the chat of a channel. `colleague`: the organisation has another member or an open
    invitation. `history`: conversations were imported. `webhook`: an endpoint or a stream consumer gets the events.
    `secondFactor`: you have a second factor.
    """

    name: Annotated[Step, Field(examples=["chat"])]
    done: bool


class Setup(Shape):
    """The first steps that your role can do, in a good order.

    `hidden`: the list is hidden from all members of the project.
    """

    hidden: bool
    steps: list[SetupStep]
