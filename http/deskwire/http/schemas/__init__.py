"""The objects in the API's responses, a model for each: the source of the schemas of responses.

The handlers make plain dictionaries, for speed; the tests check every response against these models.
"""
