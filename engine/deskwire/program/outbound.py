"""Builds the parts that call other servers, except for webhooks: pushes of the audit trail and to browsers, and mails."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from functools import cache

import httpx

from deskwire.config.config import Config
from deskwire.config.parsers import sender_parts
from deskwire.engine.accounts.sessions import SessionLifetime
from deskwire.engine.agents.streams import AgentStreams
from deskwire.engine.audit.push import AuditPusher
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.ids import new_id
from deskwire.engine.mail.content import Sender, checked_address, message_of, test_mail
from deskwire.engine.mail.ports import Mail
from deskwire.engine.mail.queue import MailCounters, Mailer, MailQueue
from deskwire.engine.mail.smtp import PORTS, SmtpServer
from deskwire.engine.ports import Store
from deskwire.engine.push.client import PushClient
from deskwire.engine.push.sending import PushCounters, PushSender
from deskwire.engine.push.vapid import VapidKey
from deskwire.engine.webhooks.http.address import AddressPolicy, Resolver, SystemResolver
from deskwire.engine.webhooks.http.client import Client
from deskwire.engine.webhooks.http.connectors import Connector, DirectConnector, Proxy, ProxyConnector


def webhook_policy(config: Config) -> AddressPolicy:
    """Return the policy for addresses of webhooks."""
    return AddressPolicy(allow=config.webhook_allow, allow_private=config.allow_private_webhooks)


def pusher(config: Config, store: Store, sealing: Encryption) -> AuditPusher:
    """Return the task that pushes audit trails, with the HTTP client of webhooks."""
    trusted = trusted_roots()

    def client(url: str) -> Client:
        route = connector_of(config, SystemResolver(), trusted)
        return Client(url, route, ssl_context=trusted, timeout_s=config.webhook_timeout_s, clock=wall_clock)

    return AuditPusher(store, wall_clock, sealing, client)


def push_key(store: Store, sealing: Encryption, url: str) -> VapidKey:
    """Return the key by which push services recognise the installation. They take an https URL as its contact."""
    return VapidKey(store, wall_clock, sealing, url if url.startswith("https:") else None)


def push_sender(
    config: Config,
    store: Store,
    sealing: Encryption,
    key: VapidKey,
    life: SessionLifetime,
    agents: AgentStreams,
    counters: PushCounters,
) -> PushSender:
    """Return the task that sends pushes, by the connections of webhooks."""
    trusted = trusted_roots()
    client = PushClient(connector_of(config, SystemResolver(), trusted), trusted, wall_clock)
    return PushSender(store, wall_clock, sealing, life, key, client, agents.desk_open, counters)


def mailer(config: Config, sealing: Encryption, url: str) -> Mailer | None:
    """Return the writer of the mail queue; None without mail settings."""
    return None if config.smtp_host is None else Mailer(sealing, url)


def mail_queue(config: Config, store: Store, mailer: Mailer, counters: MailCounters) -> MailQueue:
    """Return the task that sends queued mails."""
    server = smtp_server(config)
    return MailQueue(store, wall_clock, mailer, server.sender, server.send, counters)


def test_mail_sender(config: Config, url: str) -> Callable[[str], Awaitable[None]] | None:
    """Return the function that sends a test mail; None without mail settings."""
    if config.smtp_host is None:
        return None
    server = smtp_server(config)

    async def send(address: str) -> None:
        now = wall_clock()
        mail = Mail(new_id("eml", now), "invitation", address, now, now, now)
        await server.send(message_of(mail, test_mail(url), server.sender, now), checked_address(address))

    return send


def smtp_server(config: Config) -> SmtpServer:
    """Return the SMTP server of the settings."""
    assert config.smtp_host is not None, "there are mail settings"
    assert config.smtp_from is not None, "it belongs to the host"
    file, sender = config.smtp_password_file, Sender(*sender_parts(config.smtp_from))
    return SmtpServer(
        config.smtp_host,
        config.smtp_port or PORTS[config.smtp_security],
        config.smtp_security,
        sender,
        trusted_roots(),
        config.smtp_user,
        None if file is None else lambda: file.read_text().rstrip("\r\n"),
    )


@cache
def trusted_roots() -> ssl.SSLContext:
    """Return the context that verifies the certificates of pages and receivers. It takes 20 ms to make."""
    return httpx.create_ssl_context()


def connector_of(config: Config, resolver: Resolver, trusted: ssl.SSLContext) -> Connector:
    """Return the way to other servers: direct, or through the proxy of webhooks."""
    policy = webhook_policy(config)
    if not config.webhook_proxy:
        return DirectConnector(policy, resolver)
    return ProxyConnector(Proxy.parse(config.webhook_proxy), policy, resolver, trusted)
