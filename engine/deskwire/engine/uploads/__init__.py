"""Uploads: files from clients, their signed links, attachments and deletion."""
