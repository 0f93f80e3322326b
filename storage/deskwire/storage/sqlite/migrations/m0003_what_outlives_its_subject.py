"""Indexes that find deletions by their subject, as their rows refer to nothing: they are few, and readers look for them."""

from typing import Final

SQL: Final = "".join(
    f"CREATE INDEX deletions_by_{name} ON events (json_extract(CAST(body AS TEXT), '$.data.conversation.{path}')) "
    "WHERE conversation IS NULL;\n"
    for name, path in (("conversation", "id"), ("contact", "contact.userId"))
)
