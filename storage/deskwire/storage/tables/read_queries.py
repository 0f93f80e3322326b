"""Queries of read-only commands: accounts, credentials and the audit trail. Few, so that the commands load fast."""

from __future__ import annotations

from deskwire.storage.tables.accounts.machines import MachineReads
from deskwire.storage.tables.accounts.organisations import OrganisationReads
from deskwire.storage.tables.accounts.people import PeopleReads
from deskwire.storage.tables.accounts.roles import RoleReads
from deskwire.storage.tables.accounts.sessions import AccessTokenReads
from deskwire.storage.tables.audit import AuditReads
from deskwire.storage.tables.mail_reads import MailReads


class AdminReads(
    AccessTokenReads, MailReads, RoleReads, PeopleReads, OrganisationReads, MachineReads, AuditReads
):
    """The queries of read-only commands (`commands.admin`)."""
