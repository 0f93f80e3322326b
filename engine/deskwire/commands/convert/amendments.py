"""Posts as they are since records without their text have changed them.

An event says that words of a comment were redacted, and not which. So a version of the comment counts only if it is of later
than the event; otherwise its text is taken to be redacted altogether.
"""

from __future__ import annotations

from collections.abc import Sequence

from deskwire.commands.convert.parts import Amendment, Post
from deskwire.engine.core.values import replace
from deskwire.engine.events.project_events import Removal


def amended(post: Post, amendments: Sequence[Amendment]) -> Post | Removal:
    """Return a post as amendments leave it, or that it is gone."""
    texts = [each for each in amendments if each.what == "text"]
    if texts and not _is_later(post, texts):
        return "redacted"
    dropped = [each for each in amendments if each.what == "attachment" and not _is_later(post, [each])]
    if dropped:
        known = {each.attachment for each in dropped}
        kept = [] if None in known else [link for link in post.links if link.id not in known]
        post = replace(post, links=kept)
    if any(each.what == "hidden" for each in amendments):
        post = replace(post, internal=True)
    return post


def _is_later(post: Post, amendments: Sequence[Amendment]) -> bool:
    """Return whether the post is of later than the amendments, by its version or as something of it is redacted."""
    latest = max((each.at for each in amendments if each.at is not None), default=None)
    if post.version is not None and latest is not None and post.version >= latest:
        return True
    return len(amendments) == 1 and amendments[0].what == "text" and post.redactions > 0
