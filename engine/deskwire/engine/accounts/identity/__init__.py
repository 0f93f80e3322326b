"""Identity: whom an access token speaks for, and the protection of sign-in with a password."""
