"""Mails to the people of the installation: invitations and new passwords, sent by a queue in the store."""
