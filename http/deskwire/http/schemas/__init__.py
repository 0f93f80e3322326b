"""The objects in the API's responses: the source of the schemas in the API's description.

Handlers return plain dictionaries for speed. Tests check every response against these models.
"""
