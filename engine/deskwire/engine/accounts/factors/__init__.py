"""Second factors: codes of an authenticator app, recovery codes, passkeys, and the challenges that ask for them."""
