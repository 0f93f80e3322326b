"""The list of migrations of a PostgreSQL database, which only grows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import psycopg
from msgspec import Struct

from deskwire.storage.postgres.schema import additions, baseline, days, folding, triggers
from deskwire.storage.postgres.schema.baseline import typed


class Migration(Struct, frozen=True):
    """One step from a schema to the next, with one of `sql`, `indexes` and `steps`.

    Attributes:
        name: recorded in the database and never changed. Names sort in the order of the list.
        sql: run in one transaction, together with the record.
        fill: run after `sql` in the same transaction, for changes that need Python.
        indexes: statements such as `CREATE INDEX CONCURRENTLY IF NOT EXISTS`, which block no writer. Each is
            run outside a transaction and before the record, so it may be run again. An invalid index of an
            earlier attempt is dropped first.
        steps: works in several transactions before the record, so it must continue from any point at which it
            was stopped.
        oldest_program: the newest migration known to the oldest program that may run beside the new schema.
            With the migration's own name all nodes must be stopped.
    """

    name: str
    oldest_program: str
    sql: str = ""
    indexes: tuple[str, ...] = ()
    fill: Callable[[psycopg.Connection[Any]], None] | None = None
    steps: Callable[[psycopg.Connection[Any]], None] | None = None

    def __post_init__(self) -> None:
        """Make sure that the migration has exactly one kind of change."""
        kinds = (bool(self.sql), bool(self.indexes), self.steps is not None)
        assert sum(kinds) == 1, self.name

    @property
    def additive(self) -> bool:
        """True if older programs can keep running during and after the migration."""
        return self.oldest_program != self.name


_BASELINE: Final = (
    baseline.MAIN_TABLES + baseline.ORDER + triggers.SQL + baseline.CLUSTER + baseline.FILES + baseline.SEARCH
)

_BY_CHANGE: Final = """
CREATE INDEX CONCURRENTLY IF NOT EXISTS conversations_by_change ON conversations (project, updated_at, rowid)
WHERE updated_at <> activity
"""

# Older programs then read lists by activity without an index.
_BY_HOUR: Final = (
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS conversations_by_hour ON conversations (project, hour)",
    "DROP INDEX CONCURRENTLY IF EXISTS conversations_by_activity",
)

_OUT_OF_ORDER: Final = """
CREATE INDEX CONCURRENTLY IF NOT EXISTS conversations_out_of_order ON conversations (project, rowid)
WHERE activity < created_at OR updated_at < activity
"""

_BY_CHANNEL: Final = """
CREATE INDEX CONCURRENTLY IF NOT EXISTS conversations_by_channel ON conversations (project, channel, created_at)
WHERE channel IS NOT NULL
"""

_WITHOUT_MESSAGES: Final = """
CREATE INDEX CONCURRENTLY IF NOT EXISTS conversations_without_messages ON conversations (project, created_at)
WHERE last_message_at IS NULL
"""

MIGRATIONS: Final = (
    Migration("m0001_baseline", "m0001_baseline", _BASELINE),
    Migration("m0002_lists_by_change", "m0001_baseline", indexes=(_BY_CHANGE,)),
    Migration("m0003_machine_credentials", "m0001_baseline", additions.MACHINE_CREDENTIALS),
    Migration("m0004_contacts_as_a_resource", "m0001_baseline", additions.CONTACTS),
    Migration("m0004_contacts_as_a_resource_indexes", "m0001_baseline", indexes=additions.CONTACTS_INDEXES),
    Migration("m0005_redacted_messages", "m0001_baseline", additions.REDACTION),
    Migration("m0006_named_events", "m0006_named_events", additions.INTERNAL_EVENTS),
    Migration("m0007_milestones", "m0007_milestones", additions.MILESTONES),
    Migration("m0007_of_messages_by_time", "m0007_milestones", indexes=additions.MILESTONES_INDEXES),
    Migration(
        "m0009_comments_with_ratings",
        "m0001_baseline",
        typed("ALTER TABLE conversations ADD COLUMN rating_comment TEXT"),
    ),
    Migration(
        "m0010_deleted_organisations",
        "m0001_baseline",
        typed("ALTER TABLE organisations ADD COLUMN deleted_at bigint"),
    ),
    Migration("m0011_where_workflows_wait", "m0011_where_workflows_wait", additions.WORKFLOW_ENDS),
    Migration("m0013_lists_by_the_hour", "m0011_where_workflows_wait", indexes=_BY_HOUR),
    Migration(
        "m0015_which_step_did_it",
        "m0011_where_workflows_wait",
        typed(
            "ALTER TABLE conversation_activity ADD COLUMN step_version bigint, ADD COLUMN step_flow TEXT, ADD COLUMN step_action bigint"
        ),
    ),
    Migration(
        "m0017_attributes_of_conversations", "m0011_where_workflows_wait", additions.CONVERSATION_ATTRIBUTES
    ),
    Migration("m0018_times_out_of_order", "m0011_where_workflows_wait", indexes=(_OUT_OF_ORDER,)),
    Migration(
        "m0019_drafts_and_held_messages", "m0011_where_workflows_wait", additions.DRAFTS_AND_HELD_MESSAGES
    ),
    Migration(
        "m0020_refused_deliveries",
        "m0011_where_workflows_wait",
        typed("ALTER TABLE deliveries ADD COLUMN refusals bigint NOT NULL DEFAULT 0"),
    ),
    Migration("m0021_text_folding", "m0021_text_folding", folding.FOLDED_NAMES, fill=folding.fill_names),
    Migration(
        "m0022_scopes_of_machine_credentials",
        "m0022_scopes_of_machine_credentials",
        additions.CREDENTIAL_SCOPES,
    ),
    Migration("m0023_tokens_one_by_one", "m0022_scopes_of_machine_credentials", additions.ACCESS_TOKENS),
    Migration("m0024_marks_of_what_was_seen", "m0011_where_workflows_wait", additions.SEEN_MARKS),
    Migration(
        "m0025_ids_of_imported_messages",
        "m0022_scopes_of_machine_credentials",
        typed("ALTER TABLE imported_messages ADD COLUMN message TEXT"),
    ),
    Migration(
        "m0026_servers_that_were_seen", "m0022_scopes_of_machine_credentials", additions.SERVER_IDENTITY
    ),
    Migration(
        "m0027_events_by_day", "m0022_scopes_of_machine_credentials", steps=days.split_by_day(days.EVENTS)
    ),
    Migration("m0031_folded_tags", "m0031_folded_tags", folding.FOLDED_TAGS, fill=folding.fill_tags),
    Migration("m0032_deliveries_by_day", "m0032_deliveries_by_day", steps=days.split_deliveries),
    Migration(
        "m0033_versions_of_events",
        "m0032_deliveries_by_day",
        typed("ALTER TABLE endpoints ADD COLUMN api_version TEXT NOT NULL DEFAULT '2026-11-01'"),
    ),
    Migration("m0034_customers", "m0032_deliveries_by_day", additions.CUSTOMERS),
    Migration("m0034_customers_indexes", "m0032_deliveries_by_day", indexes=additions.CUSTOMERS_INDEXES),
    Migration("m0035_uploads_of_customers", "m0032_deliveries_by_day", additions.UPLOADS_OF_CUSTOMERS),
    Migration(
        "m0035_uploads_of_customers_indexes",
        "m0032_deliveries_by_day",
        indexes=additions.UPLOADS_OF_CUSTOMERS_INDEXES,
    ),
    Migration("m0036_sign_in_of_sessions", "m0032_deliveries_by_day", additions.SIGN_IN_OF_SESSIONS),
    Migration("m0037_roles", "m0032_deliveries_by_day", additions.ROLES),
    Migration("m0038_ends_of_sign_ins", "m0032_deliveries_by_day", additions.ENDS_OF_SIGN_INS),
    Migration("m0039_links_and_mails", "m0032_deliveries_by_day", additions.LINKS_AND_MAILS),
    Migration("m0040_identities", "m0032_deliveries_by_day", additions.IDENTITIES),
    Migration("m0040_identities_indexes", "m0032_deliveries_by_day", indexes=additions.IDENTITIES_INDEXES),
    # An older node would let users in after the password alone.
    Migration("m0041_second_factors", "m0041_second_factors", additions.SECOND_FACTORS),
    # An older node would store messages of blocked contacts.
    Migration(
        "m0042_blocked_contacts",
        "m0042_blocked_contacts",
        typed("ALTER TABLE contacts ADD COLUMN blocked TEXT"),
    ),
    Migration("m0043_conversations_by_channel", "m0042_blocked_contacts", indexes=(_BY_CHANNEL,)),
    Migration("m0044_formats_of_messages", "m0042_blocked_contacts", additions.FORMATS_OF_MESSAGES),
    Migration("m0045_notification_settings", "m0042_blocked_contacts", additions.NOTIFICATION_SETTINGS),
    Migration("m0046_mentions_and_followers", "m0042_blocked_contacts", additions.MENTIONS_AND_FOLLOWERS),
    Migration("m0047_saved_views", "m0042_blocked_contacts", additions.SAVED_VIEWS),
    Migration("m0048_scheduled_messages", "m0042_blocked_contacts", additions.SCHEDULED_MESSAGES),
    Migration("m0049_web_push", "m0042_blocked_contacts", additions.WEB_PUSH),
    Migration("m0050_conversations_without_messages", "m0042_blocked_contacts", indexes=(_WITHOUT_MESSAGES,)),
    # An older node would keep the mark of a conversation after the contact's next message.
    Migration(
        "m0051_no_answer_needed",
        "m0051_no_answer_needed",
        typed("ALTER TABLE conversations ADD COLUMN no_answer_needed_since bigint"),
    ),
    Migration("m0052_bulk_jobs", "m0051_no_answer_needed", additions.BULK_JOBS),
    # An older node would store messages in merged conversations, which agents no longer see.
    Migration("m0053_merged_conversations", "m0053_merged_conversations", additions.MERGED_CONVERSATIONS),
    # An older node would show no messages in conversations that were split off, and leave their ids at its deletions.
    Migration("m0054_split_conversations", "m0054_split_conversations", additions.SPLIT_CONVERSATIONS),
    Migration(
        "m0055_hidden_setup",
        "m0054_split_conversations",
        typed(
            "ALTER TABLE projects ADD COLUMN setup_hidden smallint NOT NULL DEFAULT 0 CHECK (setup_hidden IN (0, 1))"
        ),
    ),
)

RECORDS: Final = "schema_migrations"  # the table of applied migrations

# Every table of the installation that a database may have.
TABLES: Final = frozenset(re.findall(r"CREATE TABLE (\w+)", "".join(each.sql for each in MIGRATIONS))) | {
    RECORDS
}
