"""The security of the connection to the SMTP server, without the imports of the connection: the settings name it too."""

from typing import Literal

Security = Literal["starttls", "tls", "none"]
