"""The receiver as the developer names it: a URL, or an address without a scheme."""

from __future__ import annotations

import re
from typing import Final

from deskwire.engine.webhooks.http.address import AddressPolicy
from deskwire.engine.webhooks.url import url_problems

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PORT: Final = re.compile(r":?(\d{1,5}(?:[/?].*)?)")


class BadTarget(Exception):
    """The error for a target that nothing can be posted to; its text says everything that is wrong."""


def receiver_url(target: str) -> str:
    """Give the URL: `localhost:3000/hook` means http, and so does a port alone, of this machine.

    Any address and port will do, as it is the developer's own choice. Raises BadTarget.
    """
    url = target
    if _SCHEME.match(target) is None:
        port = _PORT.fullmatch(target)
        url = f"http://localhost:{port[1]}" if port else f"http://{target}"
    problems = [
        each for each in url_problems(url, AddressPolicy(allow_private=True)) if each.code != "url_port"
    ]
    if problems:
        raise BadTarget(" ".join(each.message for each in problems))
    return url
