<<<<<<<< HEAD:storage/deskwire/storage/sqlite/migrations/m0071_formats_of_messages.py
"""The format of messages: Markdown or plain text."""
========
"""The formats of messages: Markdown, or null for plain text."""
>>>>>>>> part/markdown:storage/deskwire/storage/sqlite/migrations/m0070_formats_of_messages.py

from typing import Final

SQL: Final = """
-- Null for plain text, as for all messages from before.
ALTER TABLE messages ADD COLUMN format TEXT;
ALTER TABLE held_messages ADD COLUMN format TEXT;
"""
