"""The error of a start that is not possible."""


class StartError(Exception):
    """The service can't start; the text says why."""
