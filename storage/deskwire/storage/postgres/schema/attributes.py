"""The attributes of conversations as rows, by which the few that have one are found among all; triggers keep them."""

from __future__ import annotations

from typing import Final

from deskwire.storage.postgres.schema.types import typed

_NUMBER: Final = "CAST(value #>> '{}' AS double precision)"

SQL: Final = typed(rf"""
-- The value is the beginning of a text, or the integer part of a number. A conversation's own row says which rows it has here.
CREATE TABLE conversation_attributes (
    project bigint NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, conversation bigint NOT NULL,
    PRIMARY KEY (project, name, value, conversation)
);
CREATE FUNCTION attribute_keys(attributes text) RETURNS TABLE (name text, value text) LANGUAGE sql IMMUTABLE AS $$
    SELECT key, CASE json_typeof(value) WHEN 'boolean' THEN value #>> '{{}}' WHEN 'string' THEN left(value #>> '{{}}', 64)
    ELSE CASE WHEN {_NUMBER} > -1e15 AND {_NUMBER} < 1e15 THEN CAST(CAST(trunc({_NUMBER}) AS bigint) AS text) ELSE 'large' END END
    FROM json_each(CAST(replace(attributes, '\u0000', '\u0020') AS json)) WHERE json_typeof(value) IN ('boolean', 'string', 'number')
$$;
CREATE FUNCTION index_attributes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM conversation_attributes g USING attribute_keys(OLD.attributes) k
        WHERE g.project = OLD.project AND g.name = k.name AND g.value = k.value AND g.conversation = OLD.rowid;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO conversation_attributes SELECT NEW.project, k.name, k.value, NEW.rowid FROM attribute_keys(NEW.attributes) k
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL; END $$;
CREATE TRIGGER attributes_put AFTER INSERT ON conversations FOR EACH ROW WHEN (NEW.attributes <> '{{}}')
    EXECUTE FUNCTION index_attributes();
CREATE TRIGGER attributes_change AFTER UPDATE OF attributes ON conversations FOR EACH ROW
    WHEN (NEW.attributes <> OLD.attributes) EXECUTE FUNCTION index_attributes();
CREATE TRIGGER attributes_go AFTER DELETE ON conversations FOR EACH ROW WHEN (OLD.attributes <> '{{}}')
    EXECUTE FUNCTION index_attributes();
INSERT INTO conversation_attributes SELECT c.project, k.name, k.value, c.rowid
    FROM conversations c CROSS JOIN LATERAL attribute_keys(c.attributes) k ON CONFLICT DO NOTHING;
""")
