"""The reference that the program writes about itself, made from the code that it describes."""

from deskwire.commands.reference.settings import client_table, document, markdown, table

__all__ = ["client_table", "document", "markdown", "table"]
