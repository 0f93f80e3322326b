"""An inbox full of conversations to look at, made through the API."""
