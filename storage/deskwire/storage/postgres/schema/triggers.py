"""Triggers: they clear kept answers of deleted rows, and notify nodes of changes."""

from __future__ import annotations

from typing import Final

# Tables, with the change that deletes a row, after which kept answers about it are cleared.
_ROW_ENDS: Final = (
    ("contacts", "DELETE", None),
    ("conversations", "DELETE", None),
    ("memory", "DELETE", None),
    ("survey_responses", "DELETE", None),
    ("tickets", "DELETE", None),
    ("uploads", "DELETE", None),
    ("workflows", "DELETE", None),
    ("snippets", "DELETE", None),
    ("endpoints", "UPDATE OF status", "NEW.status = 'removed'"),
    ("projects", "UPDATE OF removed_at", "NEW.removed_at IS NOT NULL"),
    ("server_keys", "UPDATE OF revoked_at", "NEW.revoked_at IS NOT NULL"),
    ("surveys", "UPDATE OF removed", "NEW.removed = 1"),
    ("teams", "UPDATE OF deleted_at", "NEW.deleted_at IS NOT NULL"),
    ("users", "UPDATE OF deleted_at", "NEW.deleted_at IS NOT NULL"),
)

# Tables, with the changes that nodes are notified of, and the word for each.
_NOTIFYING_CHANGES: Final = (
    ("server_keys", "INSERT OR DELETE OR UPDATE OF hash, project, revoked_at", "callers"),
    ("projects", "INSERT OR DELETE OR UPDATE", "callers"),
    ("memberships", "DELETE OR UPDATE", "people"),
    ("users", "DELETE OR UPDATE OF generation", "people"),
    ("sessions", "DELETE", "session"),
    ("endpoints", "INSERT OR DELETE OR UPDATE OF status", "endpoints"),
)

_FORGET_ANSWERS: Final = """
CREATE FUNCTION forget_answers() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE kept_answers SET subject = NULL, sealed = NULL WHERE subject = OLD.id;
    RETURN NULL; END $$;
CREATE FUNCTION forget_answers_of_member() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE kept_answers SET subject = NULL, sealed = NULL WHERE subject = (SELECT id FROM users WHERE rowid = OLD."user");
    RETURN NULL; END $$;
CREATE TRIGGER kept_answers AFTER DELETE ON memberships FOR EACH ROW EXECUTE FUNCTION forget_answers_of_member();
CREATE FUNCTION end_sessions() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM sessions WHERE "user" = NEW.rowid;
    RETURN NULL; END $$;
CREATE TRIGGER sessions_end AFTER UPDATE OF generation ON users FOR EACH ROW WHEN (NEW.generation <> OLD.generation)
    EXECUTE FUNCTION end_sessions();
"""

_NOTIFY: Final = """
-- For the transaction itself: words in the setting `deskwire.changes`, that of a session with its id behind a colon.
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE word text := TG_ARGV[0]; BEGIN
    IF word = 'session' THEN word := word || ':' || OLD.id; END IF;
    PERFORM set_config('deskwire.changes', concat(current_setting('deskwire.changes', true), word, ' '), true);
    RETURN NULL; END $$;
-- For all others, and at the very end of the transaction, as everybody waits for this row.
CREATE FUNCTION begin_epoch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF current_setting('deskwire.epoch', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        UPDATE installation SET epoch = epoch + 1;
        PERFORM set_config('deskwire.epoch', pg_current_xact_id()::text, true);
    END IF;
    RETURN NULL; END $$;
-- Whoever routes a project's events compares this while it has the head. By its name the trigger fires before `begin_epoch`:
-- batches, too, lock heads before the epoch.
CREATE FUNCTION route_anew() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE project_heads SET endpoints_version = endpoints_version + 1 WHERE project = coalesce(NEW.project, OLD.project);
    RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER a_route_anew AFTER INSERT OR DELETE OR UPDATE OF url, events, sealed_secret, secret_tail,
    updated_at, status, status_reason, description, catch_up, old_secret, old_secret_until ON endpoints
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION route_anew();
"""


def forget_answers_trigger(table: str, change: str, condition: str | None) -> str:
    """Return the trigger that clears a row's kept answers."""
    when = "" if condition is None else f"WHEN ({condition}) "
    return f"CREATE TRIGGER kept_answers AFTER {change} ON {table} FOR EACH ROW {when}EXECUTE FUNCTION forget_answers();\n"


def notify_triggers(table: str, change: str, word: str) -> str:
    """Return the triggers that notify nodes of a table's changes."""
    return (
        f"CREATE TRIGGER note_change AFTER {change} ON {table} FOR EACH ROW EXECUTE FUNCTION note_change('{word}');\n"
        f"CREATE CONSTRAINT TRIGGER begin_epoch AFTER {change} ON {table} DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION begin_epoch();\n"
    )


SQL: Final = "".join(
    (
        _FORGET_ANSWERS,
        *(forget_answers_trigger(*each) for each in _ROW_ENDS),
        _NOTIFY,
        *(notify_triggers(*each) for each in _NOTIFYING_CHANGES),
    )
)
