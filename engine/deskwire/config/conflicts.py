"""Contradictions between settings that are each valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from deskwire.config.locations import has_secret
from deskwire.config.parsers import Setting
from deskwire.config.settings import RETRIES, Settings


def contradictions(config: Settings, settings: Mapping[str, Setting]) -> Iterator[tuple[frozenset[str], str]]:
    """Yield each contradiction between valid values: the settings' names, and a sentence."""

    def about(sentence: str, *names: str) -> tuple[frozenset[str], str]:
        variables = [settings[name].variable for name in names]
        return frozenset(names), sentence.format(*variables)

    if config.allow_private_webhooks and config.webhook_allow:
        no_effect = "{} has no effect while {} lets everything through"
        yield about(no_effect, "webhook_allow", "allow_private_webhooks")
    for name in ("body_limit_bytes", "network_logs_limit_bytes"):
        if config.request_bodies_bytes < 2 * getattr(config, name):  # a project gets at most half (ADR 41)
            yield about("{} must be at least twice {}", "request_bodies_bytes", name)
    sources = ("jwt_public_key_file", "jwt_jwks_file", "jwt_jwks_url")
    set_sources = [name for name in sources if getattr(config, name) is not None]
    if len(set_sources) > 1:
        yield about(" and ".join("{}" for _ in set_sources) + " can't be set together", *set_sources)
    if not set_sources and not config.own_tokens and not config.oidc_providers:
        yield about(
            "{} needs one of {}, {}, {} and {}, otherwise no one can sign in",
            "own_tokens",
            *sources,
            "oidc_issuer",
        )
    issuers = Counter(each.issuer.rstrip("/") for each in config.oidc_providers)
    if twice := sorted(issuer for issuer, count in issuers.items() if count > 1):
        yield (
            frozenset({"oidc_issuer"}),
            f"two OpenID providers have the same issuer, {', '.join(twice)}: accounts belong to an issuer",
        )
    if config.jwt_jwks_keep_s < config.jwt_jwks_refresh_s:
        yield about("{} must not be less than {}", "jwt_jwks_keep_s", "jwt_jwks_refresh_s")
    if config.webhook_horizon_s < (needed_s := _last_retry_over_s(config)):
        too_short = f"{{}} must be at least {needed_s:g}, when the last retry may be over ({{}}, {{}}, {{}})"
        retrying = ("webhook_timeout_s", "webhook_retry_after_s", "webhook_retry_jitter")
        yield about(too_short, "webhook_horizon_s", *retrying)
    if config.webhook_memory_deliveries < config.webhook_concurrency:
        yield about("{} must not be less than {}", "webhook_memory_deliveries", "webhook_concurrency")
    if (config.model_url is None) != (config.model_name is None):
        yield about("{} and {} belong together: set both or neither", "model_url", "model_name")
    if config.model_key is not None and config.model_url is None:
        yield about("{} has no effect without {}", "model_key", "model_url")
    if config.database_url is not None and config.secret is None:
        yield about(
            "{} needs {}, because every node must have the same: generate one with `openssl rand -base64 48`",
            "database_url",
            "secret",
        )
    if config.origin.get("database_url") == "option" and has_secret(config.database_url or ""):
        on_command_line = (
            "--database-url must not have a password, which other users of the machine could read in the list of processes: set it "
            "in {}, PGPASSWORD or ~/.pgpass"
        )
        yield about(on_command_line, "database_url")
    if config.database_url is None:
        if config.files not in (None, "disk"):
            yield about("{} can only be disk without {}", "files", "database_url")
        for name in ("node", "require_sync_standby"):
            if getattr(config, name):
                yield about("{} has no effect without {}", name, "database_url")
    if (config.smtp_host is None) != (config.smtp_from is None):
        yield about("{} and {} belong together: set both or neither", "smtp_host", "smtp_from")
    if (config.smtp_user is None) != (config.smtp_password_file is None):
        yield about("{} and {} belong together: set both or neither", "smtp_user", "smtp_password_file")
    if config.smtp_host is None:
        for name in ("smtp_port", "smtp_user"):
            if getattr(config, name) is not None:
                yield about("{} has no effect without {}", name, "smtp_host")
    elif config.smtp_security == "none" and config.smtp_user is not None and not _is_local(config.smtp_host):
        yield about(
            "{} must not be none with {}, whose password others could read on the way",
            "smtp_security",
            "smtp_user",
        )
    if config.secret_previous is not None and config.secret is None:
        yield about("{} has no effect without {}", "secret_previous", "secret")
    if (config.tls_cert is None) != (config.tls_key is None):
        yield about("{} and {} belong together: set both or neither", "tls_cert", "tls_key")
    elif config.tls_cert is not None and (config.public_url or "").startswith("http:"):
        yield about("{} must begin with https:// while {} is set", "public_url", "tls_cert")
    if config.stream_resume_window_s > config.event_window_s:
        yield about("{} must not be more than {}", "stream_resume_window_s", "event_window_s")


def _is_local(host: str) -> bool:
    return host in {"localhost", "127.0.0.1", "::1"}


def _last_retry_over_s(config: Settings) -> float:
    """Return the latest end of the last retry, in seconds after the start of the first attempt."""
    pauses_s = sum(config.webhook_retry_after_s) * (1 + config.webhook_retry_jitter)
    return config.webhook_timeout_s * (RETRIES + 1) + pauses_s
