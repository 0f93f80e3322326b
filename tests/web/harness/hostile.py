"""Hostile texts, which must be shown as plain text."""

from __future__ import annotations

from typing import Final

FIRED: Final = "fired"
"""The window property that a script in one of these texts would set."""

MARKUP: Final = (
    f"<script>window.{FIRED}=1</script>",
    f"<img src=x onerror=window.{FIRED}=2>",
    f"<svg/onload=window.{FIRED}=3>",
    f'"><script src=data:,window.{FIRED}=4></script>',
    f"'-window.{FIRED}=5-'",
    f"${{window.{FIRED}=6}}",
    f"{{{{constructor.constructor('window.{FIRED}=7')()}}}}",
    f"javascript:window.{FIRED}=8",
    f'https://example.org/"onmouseover=window.{FIRED}=9',
    f"https://example.org/<script>window.{FIRED}=10</script>",
    f"data:text/html,<script>window.{FIRED}=11</script>",
    f"<a href=javascript:window.{FIRED}=12>a link</a>",
    f"<iframe srcdoc='<script>parent.{FIRED}=13</script>'></iframe>",
    "<style>@import'data:,x';body{display:none}</style><base href=https://example.net/>",
    f"<math><mtext></form><form><mglyph><style></math><img src onerror=window.{FIRED}=14>",
    f"<template><slot onslotchange=window.{FIRED}=15></template>",
    "&lt;b&gt;not bold&lt;/b&gt; &amp; &#x3c;i&#x3e;",
)
"""Markup, and text that a careless page would turn into markup or code."""

CONTROLS: Final = (
    "\u202egnp.exe\u202c is what it says",
    "\u2066isolated \u2067right to left\u2069 never closed",
    "zero\u200bwidth\u200djoiners\ufeff",
    "combining: " + "e" + "\u0301" * 200,
    "separated\x00by\x00nul".replace("\u0000", "\u2400"),
    "tabs\tand\r\nlines\u2028of\u2029every\u0085kind",
)
"""Controls of direction, of width and of lines."""

SCRIPTS: Final = (
    "שלום, איפה ההזמנה שלי?",
    "أين طلبي رقم 1001؟",
    "私の注文はどこですか",
    "Где мой заказ?",
    "👩‍👩‍👧‍👦🏳️‍🌈 where is it? 👍🏽",
)
"""Scripts of the world, two of which are written from right to left."""

LONG_WORD: Final = "w" * 20_000
"""A word without a place to break it."""
