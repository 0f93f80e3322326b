"""The look of the widget: its languages, and a text colour that is readable on the channel's colour."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from werkzeug.datastructures import LanguageAccept
from werkzeug.http import parse_accept_header

SHIPPED: Final = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "tr", "ar", "ja")
"""The languages of the texts in `widget/texts`."""

PANEL_LIGHT: Final = "#f3f3f6"
PANEL_DARK: Final = "#26282f"
"""The backgrounds of text in the panel that contrast least with it, in both themes; see `panel.css`."""
DEFAULT_LANGUAGE: Final = "en"
_RIGHT_TO_LEFT: Final = frozenset({"ar", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi"})
_CONTRAST_MIN: Final = 4.5  # WCAG 2.2, 1.4.3
COLOUR_PATTERN: Final = "^#[0-9a-fA-F]{6}$"


def choose_language(offered: Iterable[str], wanted: str | None, accepted: str | None) -> str:
    """Return the language of the widget for a customer.

    The first wish that is offered decides: a tag equals an offered one, or has the same primary language.

    Args:
        offered: the languages of the channel's texts; if there are none, all that are shipped.
        wanted: the language that the host's page asks for.
        accepted: the value of `Accept-Language`.
    """
    tags = list(offered) or list(SHIPPED)
    accepts = parse_accept_header(accepted, LanguageAccept)
    wishes = [*([wanted] if wanted else []), *(tag for tag, quality in accepts if quality > 0)]
    for wish in wishes:
        for equal in (_same_tag, _same_language):
            for tag in tags:
                if equal(tag, wish):
                    return tag
    return DEFAULT_LANGUAGE if DEFAULT_LANGUAGE in tags else tags[0]


def shipped_language(tag: str) -> str:
    """Return the shipped language of the panel's texts for this language tag."""
    primary = _primary(tag)
    return primary if primary in SHIPPED else DEFAULT_LANGUAGE


def direction(tag: str) -> str:
    """Return the direction of text in a language: `rtl` or `ltr`."""
    return "rtl" if _primary(tag) in _RIGHT_TO_LEFT else "ltr"


def text_colour(background: str) -> str:
    """Return white or black, readable on this colour with a contrast of at least 4.5.

    One of them always is: their contrasts multiply to 21.
    """
    return "#ffffff" if contrast("#ffffff", background) >= _CONTRAST_MIN else "#000000"


def readable(colour: str, background: str) -> str:
    """Return the colour, mixed with black or white as far as text of it needs on this background.

    The contrast is at least 4.5.
    """
    target = text_colour(background)
    steps = (_mixed(colour, target, share / 20) for share in range(21))
    return next(each for each in steps if contrast(each, background) >= _CONTRAST_MIN)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours (WCAG 2.2), 1 to 21."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _mixed(colour: str, target: str, share: float) -> str:
    pairs = ((int(colour[at : at + 2], 16), int(target[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(own + (other - own) * share):02x}" for own, other in pairs)


def _luminance(colour: str) -> float:
    """Return the relative luminance (WCAG 2.2) of `#rrggbb`."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _primary(tag: str) -> str:
    return tag.lower().replace("_", "-").partition("-")[0]


def _same_tag(tag: str, wish: str) -> bool:
    return tag.lower() == wish.lower().replace("_", "-")


def _same_language(tag: str, wish: str) -> bool:
    return _primary(tag) == _primary(wish)
