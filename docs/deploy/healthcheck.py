"""Asks the service in this container whether it is ready; the exit status is 0 if it is, as HEALTHCHECK wants it.

It follows the settings: the port, and TLS, whose certificate names the public host and is not verified here. Proxies
of the environment are left out of it.
"""

import http.client
import os
import ssl
import sys

PORT = int(os.environ.get("DESKWIRE_PORT") or 8080)
SECONDS = 2.0


def connection() -> http.client.HTTPConnection:
    """Return a connection to the service, which is not open yet."""
    if not os.environ.get("DESKWIRE_TLS_CERT"):
        return http.client.HTTPConnection("127.0.0.1", PORT, timeout=SECONDS)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection("127.0.0.1", PORT, timeout=SECONDS, context=context)


def problem() -> str | None:
    """Return what keeps the service from being ready; None if nothing does."""
    try:
        asked = connection()
        asked.request("GET", "/readyz")
        answer = asked.getresponse()
        return (
            None if answer.status == 200 else f"{answer.status} {answer.read(1000).decode(errors='replace')}"
        )
    except (OSError, http.client.HTTPException) as error:
        return f"no answer: {error}"


if __name__ == "__main__":
    sys.exit(problem())
