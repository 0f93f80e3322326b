"""Contacts that become one."""
