"""The reference that the program writes about itself, made from the code that it describes."""

from deskwire.reference.settings import document, markdown, table

__all__ = ["document", "markdown", "table"]
