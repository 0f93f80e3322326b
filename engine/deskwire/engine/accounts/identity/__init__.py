"""Who an access token speaks for: our own tokens, and those of an identity provider."""
