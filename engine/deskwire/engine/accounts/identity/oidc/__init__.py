"""Sign-in with OpenID Connect: providers, requests, checks of ID tokens and logout tokens, and bindings of accounts."""
