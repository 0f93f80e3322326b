"""Calls that are answered after the barrier: every call that invalidates caches of nodes (ADR 61)."""

from __future__ import annotations

from deskwire.engine.audit.actions import ACTIONS
from deskwire.http.api.routing import _OUTDATING
from deskwire.http.app import ROUTES

REMEMBERED_BY_NOBODY = {
    **dict.fromkeys(
        (
            "conversation.expired",
            "memory.deleted",
            "response.deleted",
            "setup.changed",
            "snippet.deleted",
            "survey.deleted",
            "team.deleted",
            "ticket.deleted",
            "translation.deleted",
            "upload.deleted",
            "view.deleted",
            "workflow.deleted",
        ),
        "it is read for each call",
    ),
    **dict.fromkeys(("bulk_job.started", "bulk_job.undone"), "it is read for each step"),
    "access.refused": "it changes nothing",
    "audit.push_changed": "it is read for each attempt",
    "audit.push_created": "it is read for each attempt",
    "audit.push_deleted": "it is read for each attempt",
    "audit.push_secret_rotated": "it is read for each attempt",
    "consumer.ended": "the channel's lease says so to every node",
    **dict.fromkeys(
        ("conversation.merged", "conversation.unmerged", "conversation.split"),
        "each commit compares the state that it rests on",
    ),
    "conversation.deleted": "its routes say so themselves, by `forgets`",
    "project.exported": "it changes nothing",
    "report.exported": "it changes nothing",
    "survey.exported": "it changes nothing",
    "account.changed": "who is signed in is read for each call",
    "account.created": "nothing is known of it yet",
    "audit.exported": "it changes nothing",
    "channel.created": "nothing is known of it yet",
    "contact.exported": "it changes nothing",
    **dict.fromkeys(
        ("contact.blocked", "contact.unblocked"), "the commit of each message reads the contact's block"
    ),
    "contact.merged": "a contact is looked up, and held, in each commit that gives it something",
    "contact.merged_away": "a contact is looked up, and held, in each commit that gives it something",
    "credential.created": "nothing is known of it yet",
    "history.imported": "it only adds",
    "key.created": "nothing is known of it yet",
    "organisation.created": "nothing is known of it yet",
    "organisation.deleted": "its members and projects have records of their own",
    "project.created": "nothing is known of it yet",
    **dict.fromkeys(
        ("invitation.created", "invitation.renewed", "invitation.revoked", "invitation.accepted"),
        "it is read for each call",
    ),
    **dict.fromkeys(
        ("account.factor_added", "account.factor_removed", "account.recovery_code_used"),
        "factors are read for each call that needs them",
    ),
    "account.password_link_created": "it is read for each call",
    "identity.linked": "it is read for each sign-in",
    "identity.unlinked": "it is read for each sign-in",
    "sign_in.new_device": "it changes nothing",
    "role.created": "nothing is known of it yet",
    "secret.rotated": "nodes are started with their secret",
    "sign_in.failed": "it changes nothing",
    "sign_in.proved": "the session is read for each call",
    "sign_in.succeeded": "a new session is known to nobody",
    "token.issued": "a token is good by its signature",
    "webhook.created": "it is taken up when it is seen",
    "webhook.enabled": "it is taken up when it is seen",
    "webhook.replayed": "deliveries are rows",
    "webhook.secret_rotated": "the old secret signs for a day",
}


def test_each_action_declares_whether_it_invalidates_caches() -> None:
    assert _OUTDATING.isdisjoint(REMEMBERED_BY_NOBODY)
    assert _OUTDATING | REMEMBERED_BY_NOBODY.keys() == ACTIONS.keys()


def test_routes_that_remove_rights_are_answered_after_the_barrier() -> None:
    behind = {route.operation_id for route in ROUTES if route.outdates}
    assert {
        "revokeKey",
        "deleteProject",
        "deleteEndpoint",
        "changeEndpoint",
        "endSession",
        "endSessions",
        "endSessionById",
        "setPassword",
        "deleteConversation",
        "dashboardDeleteConversation",
    } <= behind
    changing_reads = {route.operation_id for route in ROUTES if route.outdates and route.method == "GET"}
    assert changing_reads == {"completeOidcSignIn"}, "OpenID Connect returns by a GET"
