"""Identity: verification of access tokens, and protection of sign-in with a password."""
