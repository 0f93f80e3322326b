"""Make the tables of django-helpdesk and store tickets in bulk, faster than its API could; prints the credentials and ids.

Reads the texts as JSON from stdin. It runs in the peer's own environment.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from typing import Any, Final

import django

_BATCH_SIZE: Final = 1_000


def main() -> None:
    """Fill an empty database."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.peers.helpdesk_site.settings"
    asked: dict[str, Any] = json.load(sys.stdin)
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    user, token, session = _agent()
    queue = _queue()
    short = _tickets(queue, user, asked["texts"], messages=2)
    long = _tickets(queue, user, asked["long_texts"], messages=asked["long"])
    print(json.dumps({"token": token, "session": session, "queue": queue.pk, "short": short, "long": long}))


def _agent() -> tuple[Any, str, str]:
    """Return a member of the staff with a token for the API and a session for the pages."""
    from django.contrib.auth import get_user_model
    from django.contrib.sessions.backends.db import SessionStore
    from rest_framework.authtoken.models import Token

    user = get_user_model().objects.create_superuser("agent", "agent@example.com", "a long enough password")
    session = SessionStore()
    session["_auth_user_id"] = str(user.pk)
    session["_auth_user_backend"] = "django.contrib.auth.backends.ModelBackend"
    session["_auth_user_hash"] = user.get_session_auth_hash()
    session.create()
    return user, Token.objects.create(user=user).key, str(session.session_key)


def _queue() -> Any:
    from helpdesk.models import Queue

    return Queue.objects.create(title="Orders", slug="orders", allow_public_submission=True)


def _tickets(queue: Any, user: Any, texts: list[str], *, messages: int) -> list[int]:
    """Store a ticket for each text. The first message is the ticket's description."""
    from django.utils import timezone
    from helpdesk.models import FollowUp, Ticket

    now = timezone.now()
    tickets = [
        Ticket(
            queue=queue,
            title=f"Case {number}",
            description=text,
            submitter_email=f"user-{number:08}@example.com",
            created=now - timedelta(seconds=len(texts) - number),
            modified=now,
            status=Ticket.OPEN_STATUS,
            priority=3,
            secret_key=f"{number:036}",
        )
        for number, text in enumerate(texts)
    ]
    stored = Ticket.objects.bulk_create(tickets, batch_size=_BATCH_SIZE)
    followups = (
        FollowUp(ticket=each, date=now, title="Comment", comment=each.description, public=True, user=user)
        for each in stored
        for _ in range(messages - 1)
    )
    FollowUp.objects.bulk_create(followups, batch_size=_BATCH_SIZE)
    return [each.pk for each in stored]


if __name__ == "__main__":
    main()
