"""Sign a customer's identity for Deskwire's widget. Needs Python 3.9 or newer, and nothing else.

CHANNEL_ID=chn_... CHANNEL_SECRET=chs_... python3 identify.py user-1 "Ada Lovelace"

Call `identify` in a route of your site that knows who is signed in, and answer with its result. The secret stays in your backend.
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import time

LIFETIME_S = 3_600  # at most 24 hours are accepted


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def identify(channel_id, secret, user_id, **profile):
    """Return the identity of the signed-in user. `profile` may have name, email, phone, avatar and attributes."""
    header = {"alg": "HS256", "typ": "JWT"}
    claims = {**profile, "sub": user_id, "aud": channel_id, "exp": int(time.time()) + LIFETIME_S}
    signed = b".".join(encoded(json.dumps(part).encode()) for part in (header, claims))
    return (signed + b"." + encoded(hmac.digest(secret.encode(), signed, hashlib.sha256))).decode()


if __name__ == "__main__":
    print(identify(os.environ["CHANNEL_ID"], os.environ["CHANNEL_SECRET"], sys.argv[1], name=sys.argv[2]))
