"""The realtime stream without its wire: channels, tokens, takeover, cursors (decisions 5)."""
