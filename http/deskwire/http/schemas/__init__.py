"""What the API answers with, a model for each object: the source of the answers' schemas.

The handlers make plain dictionaries, for speed; every answer in the tests is held against these.
"""
