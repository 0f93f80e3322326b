"""The application that gunicorn serves."""

from __future__ import annotations

import os
from typing import Final

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.peers.helpdesk_site.settings")
application: Final = get_wsgi_application()
