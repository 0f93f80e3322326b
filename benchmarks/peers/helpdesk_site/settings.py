"""Settings of django-helpdesk in production: no debugging, tokens for its API, persistent connections, synced commits, no mail.

The environment names the database: `PEER_SQLITE` a file, or `PEER_POSTGRES` a port and a database of 127.0.0.1.
"""

from __future__ import annotations

import os
from typing import Any, Final

DEBUG: Final = False
SECRET_KEY: Final = "of a benchmark that only this machine reaches"
ALLOWED_HOSTS: Final = ["localhost", "127.0.0.1"]
ROOT_URLCONF: Final = "benchmarks.peers.helpdesk_site.urls"
USE_TZ: Final = True
SITE_ID: Final = 1
STATIC_URL: Final = "/static/"
MEDIA_ROOT: Final = os.environ.get("PEER_MEDIA", "media")
EMAIL_BACKEND: Final = "django.core.mail.backends.dummy.EmailBackend"
DEFAULT_AUTO_FIELD: Final = "django.db.models.AutoField"

INSTALLED_APPS: Final = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.sites",
    "django.contrib.staticfiles",
    "rest_framework",
    "rest_framework.authtoken",
    "helpdesk",
]
MIDDLEWARE: Final = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES: Final = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
REST_FRAMEWORK: Final = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",  # for the list's page
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
}

HELPDESK_TEAMS_MODE_ENABLED: Final = False


def _database() -> dict[str, Any]:
    """Return the database with connections that stay open, as synced as Deskwire's."""
    if (path := os.environ.get("PEER_SQLITE")) is not None:
        commands = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        options = {"init_command": commands, "transaction_mode": "IMMEDIATE", "timeout": 30}
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": path, "OPTIONS": options, "CONN_MAX_AGE": 600}
    port, user, name = os.environ["PEER_POSTGRES"].split()
    where = {"HOST": "127.0.0.1", "PORT": port, "USER": user, "NAME": name}
    return {"ENGINE": "django.db.backends.postgresql", **where, "CONN_MAX_AGE": 600}


DATABASES: Final = {"default": _database()}
