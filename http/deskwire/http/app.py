"""The table of all routes of the API."""

from __future__ import annotations

from typing import Final

from deskwire.http.api.routing import Route
from deskwire.http.metrics import exposition as metrics
from deskwire.http.pages import desk, widget
from deskwire.http.pages import explorer as description
from deskwire.http.resources import (
    event_log,
    events,
    project_export,
    reports,
    snippets,
    translations,
    uploads,
    workflow_runs,
    workflows,
)
from deskwire.http.resources.accounts import (
    access_tokens,
    audit,
    audit_push,
    credentials,
    identities,
    invitations,
    links,
    members,
    notifications,
    oidc,
    organisations,
    own_factors,
    own_sessions,
    project,
    project_health,
    projects,
    proofs,
    roles,
    second_factor,
    sessions,
    teams,
    tokens,
    users,
    web_push,
)
from deskwire.http.resources.channels import channels, public_channels
from deskwire.http.resources.contacts import blocks as contact_blocks
from deskwire.http.resources.contacts import contacts, memory
from deskwire.http.resources.contacts import dashboard as agents_contacts
from deskwire.http.resources.contacts import export as contact_export
from deskwire.http.resources.contacts import lists as contact_lists
from deskwire.http.resources.contacts import sessions as contact_sessions
from deskwire.http.resources.conversations import (
    backend_messages,
    bulk_jobs,
    dashboard,
    drafts,
    following,
    held_messages,
    merging,
    own,
    s2s,
    saved_views,
    splitting,
    waiting,
)
from deskwire.http.resources.conversations import deliveries as conversation_deliveries
from deskwire.http.resources.customers import conversations as customer_conversations
from deskwire.http.resources.customers import sessions as customer_sessions
from deskwire.http.resources.customers import stream as customer_stream
from deskwire.http.resources.customers import surveys as customer_surveys
from deskwire.http.resources.customers import uploads as customer_uploads
from deskwire.http.resources.imports import imports
from deskwire.http.resources.search import search
from deskwire.http.resources.service import health, setup
from deskwire.http.resources.stream import agents
from deskwire.http.resources.stream import consumers as stream
from deskwire.http.resources.surveys import (
    figures as survey_figures,
)
from deskwire.http.resources.surveys import (
    insights as survey_insights,
)
from deskwire.http.resources.surveys import (
    responses as survey_responses,
)
from deskwire.http.resources.surveys import (
    surveys,
)
from deskwire.http.resources.tickets import tickets, voice
from deskwire.http.resources.webhooks import dashboard as agents_webhooks
from deskwire.http.resources.webhooks import deliveries
from deskwire.http.resources.webhooks import endpoints as webhooks

_MODULES: Final = (
    project,
    s2s,
    backend_messages,
    contacts,
    agents_contacts,
    contact_lists,
    contact_export,
    contact_blocks,
    contact_sessions,
    customer_sessions,
    customer_conversations,
    customer_uploads,
    customer_surveys,
    customer_stream,
    imports,
    events,
    project_export,
    webhooks,
    deliveries,
    stream,
    agents_webhooks,
    channels,
    public_channels,
    event_log,
    agents,
    dashboard,
    waiting,
    merging,
    splitting,
    following,
    own,
    drafts,
    held_messages,
    saved_views,
    bulk_jobs,
    conversation_deliveries,
    workflows,
    workflow_runs,
    tickets,
    voice,
    search,
    reports,
    teams,
    uploads,
    translations,
    snippets,
    memory,
    surveys,
    survey_responses,
    survey_insights,
    survey_figures,
    tokens,
    sessions,
    second_factor,
    proofs,
    oidc,
    users,
    identities,
    own_sessions,
    own_factors,
    access_tokens,
    organisations,
    members,
    roles,
    notifications,
    web_push,
    invitations,
    links,
    projects,
    project_health,
    setup,
    credentials,
    audit,
    audit_push,
    health,
    metrics,
    description,
    desk,
    widget,
)
ROUTES: Final[tuple[Route, ...]] = tuple(route for module in _MODULES for route in module.routes.table)
