"""The realtime stream without its protocols: channels, tokens, takeover, cursors (decisions 5)."""
