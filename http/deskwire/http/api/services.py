"""The services that the handlers work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import trio
from msgspec import Struct, field

from deskwire.engine.accounts.credentials import Passwords, Tokens
from deskwire.engine.accounts.identity.standins import StandIns
from deskwire.engine.accounts.identity.throttle import Throttle
from deskwire.engine.accounts.identity.verifier import Verifier
from deskwire.engine.agents.streams import AgentStreams
from deskwire.engine.audit.naming import InNameOf
from deskwire.engine.audit.refusals import Refusals, RefusedCalls
from deskwire.engine.audit.trail import By
from deskwire.engine.cluster.cluster import Alone, Cluster
from deskwire.engine.conversations.registry import ActorRegistry
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Problem
from deskwire.engine.core.secret import Keyring, Secrets
from deskwire.engine.core.values import replace
from deskwire.engine.events.log import EventLog
from deskwire.engine.idempotency.once import Answers
from deskwire.engine.merging.merges import Merges
from deskwire.engine.ports import Store
from deskwire.engine.privacy.erasure import Erasures
from deskwire.engine.stream.hub import Hub
from deskwire.engine.surveys.insights.refresh import Refreshes
from deskwire.engine.surveys.removal import Removals
from deskwire.engine.uploads.service import UploadService
from deskwire.engine.voice.reply import Voice
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.http.api.admission import Admission
from deskwire.http.api.ended_tokens import EndedTokens
from deskwire.http.api.holding import Holding
from deskwire.http.api.input.client_address import Network
from deskwire.http.api.machines import Machines
from deskwire.http.api.output.static import Once, Static
from deskwire.http.api.password_hashing import Hashing
from deskwire.http.api.rate_limits import RateLimits
from deskwire.http.api.server_keys import ServerKeys
from deskwire.http.api.sessions import Sessions
from deskwire.http.metrics.measurements import Measurements
from deskwire.http.metrics.scraper import Scraping
from deskwire.http.pages.web_files import Desk
from deskwire.http.resources.service.readiness import ReadinessProbe


class Webhooks(Struct, frozen=True):
    """The delivery side as the endpoints' routes need it.

    Args:
        check_url: all that speaks against a URL, nothing if it may be posted to.
        seal: an endpoint's secret as it is stored.
        change, remove: start or adapt the deliveries of an endpoint, and stop them; the latter by its storage key.
        probe: send a delivery to an endpoint although its circuit is open: the one at this position, or the oldest.
        first_result: return when an attempt at a delivery is recorded, or one would have been.
        following: held from when an endpoint is read until its deliveries follow, so that none follows an older state.
    """

    check_url: Callable[[str], Awaitable[tuple[Problem, ...]]]
    seal: Callable[[str], bytes]
    change: Callable[[Endpoint], None]
    remove: Callable[[int], None]
    probe: Callable[[int, int | None], None]
    first_result: Callable[[Delivery], Awaitable[None]]
    following: trio.Lock = field(default_factory=trio.Lock)


class Surveys(Struct, frozen=True):
    """The background work of surveys as their routes need it."""

    refreshes: Refreshes
    removals: Removals


class Limits(Struct, frozen=True):
    """Bounds on requests: sizes in bytes, times in seconds, and the origins whose pages may make them."""

    body_limit_bytes: int
    network_logs_limit_bytes: int
    body_timeout_s: float
    stream_token_s: float
    upload_body_bytes: int
    upload_timeout_s: float
    cors_origins: tuple[str, ...] = ()


class Services(Struct, frozen=True):
    """The engine as the HTTP layer sees it.

    Args:
        keys: the server keys, those that were looked up remembered.
        machines: the machine credentials, likewise.
        sessions: the sessions of browsers, likewise.
        ended_tokens: the access tokens that were ended, likewise.
        uploads: the files.
        voice: makes voice replies.
        answers: those kept for requests that are sent again.
        rate_limits, admission: how often callers may call, and how much may be under way at once.
        agents: the streams of agents who are there.
        stream_keys: what stream tokens are signed with.
        secrets: the installation's, from which the keys of browsers are derived.
        description, event_description: the descriptions of the API and of its events.
        error_page: what each error code means.
        desk: the files of the page that agents work in.
        stand_ins: what passwords of unknown addresses are checked against.
        sign_in: whether users sign in here with a password.
        tell_request: logs an answer: method, route, status, seconds, the request's id.
        trusted_proxies: networks of proxies that say whose request they pass on.
        refusals: of sign-ins, those that the audit trail has.
        refused_calls: those that the audit trail counts.
        cluster: this node among those that share the store.
        holding: the places of calls that wait while the database is away.
        authorization_refused: is told of an authorization of the stream that was refused for now; see
            `RealtimeStream.authorization_refused`.
        key_uses, machine_uses: when each server key's or machine credential's use was last noted, in milliseconds.
    """

    store: Store
    keys: ServerKeys
    machines: Machines
    sessions: Sessions
    ended_tokens: EndedTokens
    actors: ActorRegistry
    erasures: Erasures
    merges: Merges
    log: EventLog
    clock: Clock
    tokens: Tokens
    verifier: Verifier
    passwords: Passwords
    webhooks: Webhooks
    hub: Hub
    agents: AgentStreams
    surveys: Surveys
    uploads: UploadService
    voice: Voice
    answers: Answers
    rate_limits: RateLimits
    admission: Admission
    stream_keys: Keyring
    secrets: Secrets
    limits: Limits
    version: str
    commit: str
    measured: Measurements
    scraping: Scraping
    description: Once[Static]
    event_description: Once[Static]
    error_page: Once[Static]
    tell_request: Callable[[str, str | None, int, float, str], None]
    desk: Desk
    readiness: ReadinessProbe
    stand_ins: StandIns
    refused_calls: RefusedCalls
    sign_in: bool = True
    trusted_proxies: Sequence[Network] = ()
    throttle: Throttle = field(default_factory=lambda: Throttle(trio.current_time))
    hashing: Hashing = field(default_factory=Hashing)
    refusals: Refusals = field(default_factory=Refusals)
    key_uses: dict[int, int] = field(default_factory=dict)
    machine_uses: dict[int, int] = field(default_factory=dict)
    cluster: Cluster = field(default_factory=Alone)
    holding: Holding = field(default_factory=Holding)
    authorization_refused: Callable[[str, str, float, bool], None] = lambda *_: None

    def signed(self, by: By) -> Services:
        """Return the same services, whose store writes in this name."""
        return replace(self, store=InNameOf(by, self.store))
