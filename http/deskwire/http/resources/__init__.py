"""The handlers of the API, by resource."""
