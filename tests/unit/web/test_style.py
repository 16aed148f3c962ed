"""The colours of the page: texts are readable in the light and in the dark form (WCAG 2.2, 1.4.3)."""

from __future__ import annotations

import re

import pytest

from karmada_advisor.web.pages import static_files

_TEXTS = (
    ("ink", "ground"),
    ("quiet", "ground"),
    ("accent", "ground"),
    ("bad", "ground"),
    ("ink", "sheet"),
    ("quiet", "sheet"),
    ("accent", "sheet"),
    ("bad", "sheet"),
    ("wait", "sheet"),
    ("good", "ground"),
    ("ink", "accent-soft"),
    ("bad", "accent-soft"),
    ("ink", "wait-soft"),
    ("accent", "wait-soft"),
    ("good", "good-soft"),
    ("bad", "bad-soft"),
    ("wait", "wait-soft"),
    ("accent", "accent-soft"),
    ("quiet", "accent-soft"),
    *((("on-light" if level < 6 else "on-dark"), f"h{level}") for level in range(10)),
)
"""Text and background; the numbers of the heat map are light from level 6 on."""


def _colours() -> dict[str, dict[str, str]]:
    text = static_files()["page.css"][0].decode()
    light, dark = re.findall(r":root \{(.*?)\}", text, flags=re.DOTALL)[:2]
    return {
        name: dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", part))
        for name, part in (("light", light), ("dark", dark))
    }


def _luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), _TEXTS)
def test_a_text_has_enough_contrast(scheme: str, text: str, ground: str) -> None:
    found = _colours()[scheme]
    bright, dim = sorted((_luminance(found[text]), _luminance(found[ground])), reverse=True)
    assert (bright + 0.05) / (dim + 0.05) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_scale_of_the_heat_map_is_one_of_brightness(scheme: str) -> None:
    """So it can be read without telling colours apart."""
    found = [_luminance(_colours()[scheme][f"h{level}"]) for level in range(10)]
    assert found == sorted(found, reverse=scheme == "light")
