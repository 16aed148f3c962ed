"""Types of flags that several commands have."""

from __future__ import annotations

import argparse


def seconds(text: str) -> float:
    """Return a time such as ``2s`` or ``500ms`` in seconds."""
    for suffix, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("", 1.0)):
        if text.endswith(suffix):
            try:
                found = float(text.removesuffix(suffix)) * factor
            except ValueError:
                break
            if 0 < found < float("inf"):
                return found
    raise argparse.ArgumentTypeError(f"expected a time such as 2s or 500ms, got {text!r}")
