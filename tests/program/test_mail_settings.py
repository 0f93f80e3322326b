"""Settings of the SMTP server that contradict each other stop the start, and every contradiction is named."""

from __future__ import annotations

from typing import Final

import pytest

from deskwire.config.config import Config, ConfigError

SERVER: Final = {"DESKWIRE_SMTP_HOST": "mail.example.com", "DESKWIRE_SMTP_FROM": "desk@example.com"}
SIGN_IN: Final = {"DESKWIRE_SMTP_USER": "desk", "DESKWIRE_SMTP_PASSWORD_FILE": "/run/secrets/smtp"}
PLAIN: Final = {"DESKWIRE_SMTP_SECURITY": "none"}


def problems(settings: dict[str, str]) -> list[str]:
    """Return the problems of settings, none if a service would start with them."""
    try:
        Config.load(settings, {})
    except ConfigError as error:
        return list(error.problems)
    return []


@pytest.mark.parametrize(
    ("settings", "complaints"),
    [
        (
            {"DESKWIRE_SMTP_HOST": "mail.example.com"},
            ["DESKWIRE_SMTP_HOST and DESKWIRE_SMTP_FROM belong together"],
        ),
        (
            {"DESKWIRE_SMTP_FROM": "desk@example.com"},
            ["DESKWIRE_SMTP_HOST and DESKWIRE_SMTP_FROM belong together"],
        ),
        (
            {**SERVER, "DESKWIRE_SMTP_USER": "desk"},
            ["DESKWIRE_SMTP_USER and DESKWIRE_SMTP_PASSWORD_FILE belong together"],
        ),
        (
            {**SERVER, "DESKWIRE_SMTP_PASSWORD_FILE": "/run/secrets/smtp"},
            ["DESKWIRE_SMTP_USER and DESKWIRE_SMTP_PASSWORD_FILE belong together"],
        ),
        (
            {"DESKWIRE_SMTP_PORT": "25", "DESKWIRE_SMTP_USER": "desk"},
            [
                "DESKWIRE_SMTP_USER and DESKWIRE_SMTP_PASSWORD_FILE belong together",
                "DESKWIRE_SMTP_PORT has no effect without DESKWIRE_SMTP_HOST",
                "DESKWIRE_SMTP_USER has no effect without DESKWIRE_SMTP_HOST",
            ],
        ),
        (
            {**SERVER, **SIGN_IN, **PLAIN},
            ["DESKWIRE_SMTP_SECURITY must not be none with DESKWIRE_SMTP_USER"],
        ),
        ({**SERVER, "DESKWIRE_SMTP_SECURITY": "ssl"}, ["DESKWIRE_SMTP_SECURITY must be"]),
        ({**SERVER, "DESKWIRE_SMTP_PORT": "0"}, ["DESKWIRE_SMTP_PORT must be"]),
        ({**SERVER, "DESKWIRE_SMTP_FROM": "no address"}, ["DESKWIRE_SMTP_FROM must be"]),
        (
            {**SERVER, "DESKWIRE_SMTP_FROM": "Desk <desk@example.com>\r\nBcc: all@example.com"},
            ["DESKWIRE_SMTP_FROM must be"],
        ),
    ],
)
def test_contradicting_mail_settings_are_refused_together(
    settings: dict[str, str], complaints: list[str]
) -> None:
    found = problems(settings)
    assert len(found) == len(complaints), found
    for problem, complaint in zip(found, complaints, strict=True):
        assert problem.startswith(complaint)


@pytest.mark.parametrize(
    "settings",
    [
        SERVER,
        {**SERVER, **SIGN_IN},
        {**SERVER, **PLAIN},
        {**SERVER, **SIGN_IN, **PLAIN, "DESKWIRE_SMTP_HOST": "localhost"},
        {**SERVER, **SIGN_IN, **PLAIN, "DESKWIRE_SMTP_HOST": "::1"},
    ],
)
def test_consistent_mail_settings_are_accepted(settings: dict[str, str]) -> None:
    assert problems(settings) == []
