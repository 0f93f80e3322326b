"""The people of the demo's inbox, and what agents have at hand. All of them are made up."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Final

from msgspec import Struct

USER_ID: Final = "desk-"
"""The begin of the contacts' user ids."""


class Customer(Struct, frozen=True):
    """A contact, with the language that it writes in."""

    name: str
    language: str
    city: str
    number: int

    @property
    def user_id(self) -> str:
        """The backend's id."""
        return f"{USER_ID}{self.number:02}"

    @property
    def identity(self) -> dict[str, str]:
        """The identity fields."""
        identity = {"name": self.name, "email": f"customer{self.number:02}@mail.example"}
        if self.number % 3 == 0:
            identity["phone"] = f"+44 20 7946 {self.number:04}"
        return identity


class Colleague(Struct, frozen=True):
    """An agent, with the name of its team."""

    name: str
    email: str
    team: str


def _customers() -> Iterator[Customer]:
    """Yield the bundled customers: a line has name, language and city."""
    lines = files("deskwire.commands.demo.desk").joinpath("customers.txt").read_text("utf-8").splitlines()
    for number, line in enumerate(lines):
        name, language, city = line.split("|")
        yield Customer(name, language, city, number)


SUPPORT: Final = "Support"
BILLING: Final = "Billing"

COLLEAGUES: Final = (
    Colleague("Grace Lindqvist", "grace@demo.example", SUPPORT),
    Colleague("Ken Adeyemi", "ken@demo.example", SUPPORT),
    Colleague("Mina Park", "mina@demo.example", BILLING),
)

CUSTOMERS: Final = tuple(_customers())
"""All contacts."""

SNIPPETS: Final[tuple[dict[str, Any], ...]] = (
    {
        "shortcut": "hello",
        "title": "Greeting",
        "text": "Hello {contact.name},\n\nthank you for writing to us. ",
        "language": "en",
    },
    {
        "shortcut": "late",
        "title": "The parcel is late",
        "text": "I'm sorry that it takes so long, {contact.name}. I'm asking the carrier now, and write to you as soon as I know more.",
        "language": "en",
    },
    {
        "shortcut": "refund",
        "title": "Refund is on its way",
        "text": "The refund left us today. Depending on your bank it takes three to five days.\n\n{agent.name}",
        "language": "en",
    },
    {
        "shortcut": "photo",
        "title": "Ask for a picture",
        "text": "Could you send us a picture of the box and of what is in it?",
        "language": "en",
    },
    {
        "shortcut": "hallo",
        "title": "Begrüßung",
        "text": "Guten Tag {contact.name},\n\nvielen Dank für Ihre Nachricht. ",
        "language": "de",
    },
    {
        "shortcut": "bonjour",
        "title": "Bonjour",
        "text": "Bonjour {contact.name},\n\nmerci de votre message. ",
        "language": "fr",
    },
    {
        "shortcut": "bye",
        "title": "Farewell",
        "text": "Is there anything else that I can do for you?\n\nBest regards\n{agent.name}",
    },
    {
        "shortcut": "signature",
        "title": "Webhooks: raw bytes",
        "text": 'Please verify the signature over the raw bytes of the body, before any parsing: {"a": 1} and {"a":1} are not the same.',
        "language": "en",
    },
)

MEMORIES: Final = (
    ("shoe size", "43, wide"),
    ("prefers", "to be called in the afternoon"),
    ("plan", "Gold since March"),
    ("last order", "Walnut desk, two chairs"),
    ("allergies", "No feathers, please"),
)

SURVEY: Final[dict[str, Any]] = {
    "name": "After the chat",
    "definition": {
        "schemaVersion": "2.0",
        "title": "After the chat",
        "languages": ["en"],
        "primaryLanguage": "en",
        "questions": [
            {"id": "score", "type": "nps", "required": True, "title": {"en": "Would you recommend us?"}},
            {"id": "why", "type": "text", "title": {"en": "What could be better?"}},
        ],
        "thankYou": {"en": "Thank you!"},
    },
}
