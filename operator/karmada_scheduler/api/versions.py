"""Compares resourceVersions."""

from __future__ import annotations

import re
from typing import Final

_RESOURCE_VERSION: Final = re.compile(r"[1-9][0-9]*")


def compare_resource_versions(one: str, other: str) -> int:
    """Compare two resourceVersions: -1, 0 or 1; ValueError if one is no number.

    Source: k8s.io/apimachinery v0.35.3 pkg/util/resourceversion.
    """
    for version in (one, other):
        if _RESOURCE_VERSION.fullmatch(version) is None:
            raise ValueError(f"resource version is not well formed: {version}")
    left, right = int(one), int(other)
    return (left > right) - (left < right)
