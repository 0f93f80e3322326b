"""The tables, as a list of migrations that is only ever added to: one module each.

A database records the names of the migrations that it has. Those are the names of the modules, so none is ever renamed.

Layout rules, from measurements: integer keys that grow with time, no index that no query needs, text ids
as a unique column at most. Event and delivery ids need not even that: they grow with their position, so
they are found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from deskwire.storage.sqlite.migrations import (
    m0001_the_main_job,
    m0002_webhooks_that_explain_themselves,
    m0003_what_outlives_its_subject,
    m0004_people_and_what_projects_choose,
    m0005_tickets_and_teams,
    m0006_uploads_and_attachments,
    m0007_surveys,
    m0008_memory_and_translations,
    m0009_workflows,
    m0010_what_has_passed_its_retention,
    m0011_kept_answers,
    m0012_imports,
    m0013_what_an_outage_keeps_waiting,
    m0014_audit_trail,
    m0015_the_homes_of_accounts,
    m0016_sessions_of_browsers,
    m0017_events_for_agents_alone,
    m0018_what_agents_note,
    m0019_the_agents_inbox,
    m0020_what_the_search_has_to_look_at,
    m0021_finding_contacts,
    m0022_snippets,
    m0023_deliveries_by_sequence,
    m0024_seats,
    m0025_leases,
    m0026_the_entries_of_a_shared_shelf,
    m0027_refreshes,
    m0028_lists_by_change,
    m0029_machine_credentials,
    m0030_contacts_as_a_resource,
    m0031_redacted_messages,
    m0032_events_for_those_who_name_them,
    m0033_what_reports_count,
    m0035_comments_with_ratings,
    m0036_moved_conversations_by_their_key,
    m0037_deleted_organisations,
    m0038_where_workflows_wait,
    m0039_kept_answers_beside_what_they_are_about,
    m0040_lists_by_the_hour,
    m0042_which_step_did_it,
    m0044_attributes_of_conversations,
    m0045_the_times_of_messages,
    m0046_events_of_projects,
    m0047_times_out_of_order,
    m0048_the_end_of_what_was_pruned,
    m0049_drafts_and_held_messages,
    m0050_refused_deliveries,
    m0051_text_folding,
    m0052_ids_of_imported_messages,
    m0053_scopes_of_machine_credentials,
    m0054_tokens_one_by_one_and_a_pushed_trail,
    m0055_marks_of_what_was_seen,
    m0056_the_installation_of_a_database,
    m0059_folded_tags,
    m0060_versions_of_events,
    m0061_customers,
    m0062_uploads_of_customers,
    m0063_sign_in_of_sessions,
    m0064_roles,
    m0065_ends_of_sign_ins,
    m0066_links_and_mails,
    m0067_identities,
    m0068_second_factors,
    m0069_blocked_contacts,
    m0070_conversations_by_channel,
    m0071_formats_of_messages,
    m0072_notification_settings,
    m0073_mentions_and_followers,
    m0074_saved_views,
    m0077_conversations_without_messages,
)

if TYPE_CHECKING:
    from sqlite_utils import Database

SCRIPTS: Final = {
    module.__name__.rpartition(".")[2]: module.SQL
    for module in (
        m0001_the_main_job,
        m0002_webhooks_that_explain_themselves,
        m0003_what_outlives_its_subject,
        m0004_people_and_what_projects_choose,
        m0005_tickets_and_teams,
        m0006_uploads_and_attachments,
        m0007_surveys,
        m0008_memory_and_translations,
        m0009_workflows,
        m0010_what_has_passed_its_retention,
        m0011_kept_answers,
        m0012_imports,
        m0013_what_an_outage_keeps_waiting,
        m0014_audit_trail,
        m0015_the_homes_of_accounts,
        m0016_sessions_of_browsers,
        m0017_events_for_agents_alone,
        m0018_what_agents_note,
        m0019_the_agents_inbox,
        m0020_what_the_search_has_to_look_at,
        m0021_finding_contacts,
        m0022_snippets,
        m0023_deliveries_by_sequence,
        m0024_seats,
        m0025_leases,
        m0026_the_entries_of_a_shared_shelf,
        m0027_refreshes,
        m0028_lists_by_change,
        m0029_machine_credentials,
        m0030_contacts_as_a_resource,
        m0031_redacted_messages,
        m0032_events_for_those_who_name_them,
        m0033_what_reports_count,
        m0035_comments_with_ratings,
        m0036_moved_conversations_by_their_key,
        m0037_deleted_organisations,
        m0038_where_workflows_wait,
        m0039_kept_answers_beside_what_they_are_about,
        m0040_lists_by_the_hour,
        m0042_which_step_did_it,
        m0044_attributes_of_conversations,
        m0045_the_times_of_messages,
        m0046_events_of_projects,
        m0047_times_out_of_order,
        m0048_the_end_of_what_was_pruned,
        m0049_drafts_and_held_messages,
        m0050_refused_deliveries,
        m0051_text_folding,
        m0052_ids_of_imported_messages,
        m0053_scopes_of_machine_credentials,
        m0054_tokens_one_by_one_and_a_pushed_trail,
        m0055_marks_of_what_was_seen,
        m0056_the_installation_of_a_database,
        m0059_folded_tags,
        m0060_versions_of_events,
        m0061_customers,
        m0062_uploads_of_customers,
        m0063_sign_in_of_sessions,
        m0064_roles,
        m0065_ends_of_sign_ins,
        m0066_links_and_mails,
        m0067_identities,
        m0068_second_factors,
        m0069_blocked_contacts,
        m0070_conversations_by_channel,
        m0071_formats_of_messages,
        m0072_notification_settings,
        m0073_mentions_and_followers,
        m0074_saved_views,
        m0077_conversations_without_messages,
    )
}
"""The SQL of each migration by name, in the order of application."""

FILLS: Final[Mapping[str, Callable[[Database], None]]] = {
    "m0021_finding_contacts": m0021_finding_contacts.fill,
    "m0051_text_folding": m0051_text_folding.fill,
    "m0059_folded_tags": m0059_folded_tags.fill,
}
"""Python steps of some migrations, run after their SQL."""


def known_migrations() -> set[str]:
    """Return the names of all migrations of this program."""
    return set(SCRIPTS)
