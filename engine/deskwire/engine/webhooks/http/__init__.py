"""The HTTP client that webhooks are sent with."""
