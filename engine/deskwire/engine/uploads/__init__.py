"""Files that clients send: taken in, linked to, attached to messages, and let go of."""
