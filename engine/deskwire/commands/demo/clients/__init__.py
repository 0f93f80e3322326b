"""The demo seen from outside: an API client, a webhook receiver, a stream consumer, a reader of the feed."""
