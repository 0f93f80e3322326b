"""Runs the app `support` of the guide for Django with a sign-in by a header: python django_host.py PORT."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIServer, make_server

import django
from django.conf import settings
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application


class Server(ThreadingMixIn, WSGIServer):
    """A server that answers requests at the same time."""


if __name__ == "__main__":
    settings.configure(
        SECRET_KEY="of a test",
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF="support.urls",
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "support",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.auth.middleware.RemoteUserMiddleware",
        ],
        AUTHENTICATION_BACKENDS=["django.contrib.auth.backends.RemoteUserBackend"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": Path("support.db")}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DESKWIRE_URL=os.environ["DESKWIRE_URL"],
        DESKWIRE_KEY=os.environ["DESKWIRE_KEY"],
        WEBHOOK_SECRET=os.environ["WEBHOOK_SECRET"],
    )
    django.setup()
    from django.contrib.auth.middleware import RemoteUserMiddleware  # needs the settings

    RemoteUserMiddleware.header = "HTTP_X_USER"  # signs in the user whom the test names
    call_command("migrate", run_syncdb=True, verbosity=0)
    make_server("127.0.0.1", int(sys.argv[1]), get_wsgi_application(), Server).serve_forever()
