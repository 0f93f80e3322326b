"""The services that handlers work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import trio
from msgspec import Struct, field

from deskwire.engine.accounts.credential_ends import CredentialLife
from deskwire.engine.accounts.credentials import Passwords, Tokens
from deskwire.engine.accounts.identity.dummy_hashes import DummyHashes
from deskwire.engine.accounts.identity.link_throttle import LinkRequestThrottle
from deskwire.engine.accounts.identity.start_throttle import StartThrottle
from deskwire.engine.accounts.identity.throttle import CODES_PER_ACCOUNT, SignInThrottle
from deskwire.engine.accounts.identity.verifier import Verifier
from deskwire.engine.agents.streams import AgentStreams
from deskwire.engine.audit.refusals import RefusalCache, RefusedCalls
from deskwire.engine.audit.trail import AttributedStore, ChangeOrigin
from deskwire.engine.cluster.cluster import Cluster, SingleNode
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.errors import Problem
from deskwire.engine.core.secret import Keyring, Secrets
from deskwire.engine.core.values import replace
from deskwire.engine.customers.limits import CustomerLimits
from deskwire.engine.customers.page_fetch import FetchedPage
from deskwire.engine.customers.streams import CustomerStreams
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.versions import EventVersions
from deskwire.engine.idempotency.idempotent_requests import StoredResponses
from deskwire.engine.mail.queue import Mailer
from deskwire.engine.merging.merges import Merges
from deskwire.engine.ports import Store
from deskwire.engine.privacy.erasure import Erasures
from deskwire.engine.push.vapid import VapidKey
from deskwire.engine.stream.hub import Hub
from deskwire.engine.surveys.insights.refresh import Refreshes
from deskwire.engine.surveys.removal import Removals
from deskwire.engine.uploads.service import UploadService
from deskwire.engine.voice.reply import Voice
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.http.api.admission import Admission, HeldCalls
from deskwire.http.api.auth.credential_caches import EndedTokenCache, MachineCredentialCache, ServerKeyCache
from deskwire.http.api.auth.customers import CustomerSessions
from deskwire.http.api.auth.metrics_token import ScrapeAccess
from deskwire.http.api.auth.oidc import OidcSignIns
from deskwire.http.api.auth.passwords import PasswordHashing
from deskwire.http.api.auth.sessions import Sessions
from deskwire.http.api.channel_cache import ChannelCache
from deskwire.http.api.input.headers import Network
from deskwire.http.api.output.static import DeskFiles, Lazy, Static
from deskwire.http.api.rate_limits import RateLimits
from deskwire.http.api.readiness import ReadinessProbe
from deskwire.http.measurements import Measurements


class Webhooks(Struct, frozen=True):
    """The operations on webhook deliveries that the endpoints' routes need.

    Args:
        check_url: returns the reasons against posting to a URL; empty if it is allowed.
        versions: the versions of events that an endpoint may be pinned to.
        seal: encrypts an endpoint's secret for storage.
        change, remove: start or adapt the deliveries of an endpoint, and stop them, by its storage key.
        probe: send the delivery at this position, or the oldest one, although the endpoint's circuit is
            open.
        first_result: return once an attempt at a delivery has been recorded, or one would have been.
        following: held between the read of an endpoint and the update of its deliveries, so that updates
            keep their order.
    """

    check_url: Callable[[str], Awaitable[tuple[Problem, ...]]]
    versions: EventVersions
    seal: Callable[[str], bytes]
    change: Callable[[Endpoint], None]
    remove: Callable[[int], None]
    probe: Callable[[int, int | None], None]
    first_result: Callable[[Delivery], Awaitable[None]]
    following: trio.Lock = field(default_factory=trio.Lock)


class WebPush(Struct, frozen=True):
    """The operations on web push that its routes need: the installation's key, and the encryption of endpoints."""

    key: VapidKey
    sealing: Encryption


class SiteChecks(Struct, frozen=True):
    """The operations on websites that the routes of channels need.

    Args:
        fetch: fetches a page for a check, under the address rules of webhooks.
        public_url: the address of this service that browsers use.
    """

    fetch: Callable[[str], Awaitable[FetchedPage]]
    public_url: str


class Surveys(Struct, frozen=True):
    """The background tasks of surveys that their routes need."""

    refreshes: Refreshes
    removals: Removals


class SecondFactors(Struct, frozen=True):
    """The operations on second factors that their routes need.

    Args:
        seal, open: encrypt and decrypt the secrets of authenticator apps.
        throttle: limits wrong codes. A correct password does not reset it, unlike the throttle of passwords.
        starts: limits the sign-ins that are begun by a passkey alone.
    """

    seal: Callable[[str], bytes]
    open: Callable[[bytes], str]
    throttle: SignInThrottle = field(
        default_factory=lambda: SignInThrottle(trio.current_time, CODES_PER_ACCOUNT)
    )
    starts: StartThrottle = field(default_factory=lambda: StartThrottle(trio.current_time))


class Limits(Struct, frozen=True):
    """Limits on requests.

    They are in bytes and seconds, and include the origins whose pages may send requests.
    """

    body_limit_bytes: int
    network_logs_limit_bytes: int
    body_timeout_s: float
    stream_token_s: float
    upload_body_bytes: int
    upload_timeout_s: float
    cors_origins: tuple[str, ...] = ()


class Services(Struct, frozen=True):
    """The engine as used by the HTTP layer.

    Args:
        keys, machines, channels, sessions: caches of server keys, machine credentials, channels and browser sessions.
        ended_tokens: cache of the access tokens that were ended.
        credential_life: the longest life of new server keys and machine credentials.
        customers: the sessions of customers; `customer_limits` are their limits.
        uploads: the files.
        voice: makes voice replies.
        answers: stored responses of requests with an `Idempotency-Key`.
        rate_limits, admission: limits on the rate of calls, and on the calls under way.
        agents: the streams of agents who are online.
        customer_streams: the streams of customers, and their presence for agents.
        stream_keys: keys that sign stream tokens.
        secrets: of the installation; keys of browsers are derived from them.
        description, event_description: the descriptions of the API and of its events.
        error_page: explains each error code.
        permission_table: the permissions with the calls that each opens, as JSON.
        desk: the files of the agents' page.
        dummy_hashes: dummy hashes for the passwords of unknown addresses.
        oidc: sign-ins at OpenID providers.
        sign_in: True if users sign in here with a password.
        log_request: logs a response: method, route, status, seconds, the request's id.
        trusted_proxies: networks of proxies whose `X-Forwarded-For` is trusted.
        refusals: refused sign-ins for the audit trail.
        refused_calls: counts of refused calls for the audit trail.
        cluster: this node among the nodes that share the store.
        holding: calls that wait during a database outage.
        authorization_refused: called when a stream authorization is refused temporarily; see
            `RealtimeStream.authorization_refused`.
        mailer: queues mails; None without mail settings. `link_requests` throttles requests for a new password by mail.
        key_uses, machine_uses: when each credential's last use was recorded, in milliseconds.
    """

    store: Store
    keys: ServerKeyCache
    machines: MachineCredentialCache
    channels: ChannelCache
    sessions: Sessions
    ended_tokens: EndedTokenCache
    credential_life: CredentialLife
    customers: CustomerSessions
    customer_limits: CustomerLimits
    actors: ActorRegistry
    erasures: Erasures
    merges: Merges
    log: EventLog
    clock: Clock
    tokens: Tokens
    verifier: Verifier
    passwords: Passwords
    webhooks: Webhooks
    push: WebPush
    sites: SiteChecks
    hub: Hub
    agents: AgentStreams
    customer_streams: CustomerStreams
    surveys: Surveys
    uploads: UploadService
    voice: Voice
    answers: StoredResponses
    rate_limits: RateLimits
    admission: Admission
    stream_keys: Keyring
    secrets: Secrets
    limits: Limits
    version: str
    commit: str
    measured: Measurements
    scraping: ScrapeAccess
    description: Lazy[Static]
    event_description: Lazy[Static]
    error_page: Lazy[Static]
    permission_table: Lazy[bytes]
    log_request: Callable[[str, str | None, int, float, str], None]
    desk: DeskFiles
    readiness: ReadinessProbe
    dummy_hashes: DummyHashes
    oidc: OidcSignIns
    refused_calls: RefusedCalls
    second_factors: SecondFactors
    sign_in: bool = True
    trusted_proxies: Sequence[Network] = ()
    throttle: SignInThrottle = field(default_factory=lambda: SignInThrottle(trio.current_time))
    hashing: PasswordHashing = field(default_factory=PasswordHashing)
    refusals: RefusalCache = field(default_factory=RefusalCache)
    key_uses: dict[int, int] = field(default_factory=dict)
    machine_uses: dict[int, int] = field(default_factory=dict)
    cluster: Cluster = field(default_factory=SingleNode)
    holding: HeldCalls = field(default_factory=HeldCalls)
    authorization_refused: Callable[[str, str, float, bool], None] = lambda *_: None
    mailer: Mailer | None = None
    link_requests: LinkRequestThrottle = field(default_factory=lambda: LinkRequestThrottle(trio.current_time))

    def signed(self, origin: ChangeOrigin) -> Services:
        """Return the same services with a store that writes in this name."""
        return replace(self, store=AttributedStore(origin, self.store))
