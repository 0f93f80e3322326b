"""The reference of the program, made from the code that it describes."""

from deskwire.commands.reference.settings import client_table, document, markdown, table

__all__ = ["client_table", "document", "markdown", "table"]
