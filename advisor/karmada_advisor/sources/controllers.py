"""Whether the controllers that answers are computed with are those of the control plane that they are about."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from karmada_advisor.sources.control_plane import control_plane
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.gathered import Objects
from karmada_scheduler.config.decision_rules import DEFAULT_RULES

_KNOWN: Final = "what its controllers do is computed as those of Karmada v1.18.2 do it"


def notes_about_controllers(arguments: argparse.Namespace, objects: Objects) -> Sequence[str]:
    """Return a sentence if a control plane serves the bindings of another version of Karmada, or it is not known which.

    Args:
        arguments: As parsed.
        objects: What was read; files do not tell the version.
    """
    if not objects.is_live:
        return ()
    from karmada_advisor.sources import live  # the client, which files do not need
    from karmada_scheduler.client.bindings_schema import DOCUMENTS

    try:
        found = live.read_bindings_version(control_plane(arguments), timeout=arguments.request_timeout)
    except NoAnswerError as error:
        return (f"which version of Karmada the control plane serves is not known: {error}; {_KNOWN}",)
    if found == DEFAULT_RULES.decisions_of:
        return ()
    return (f"the control plane serves the bindings of Karmada {found} ({DOCUMENTS}); {_KNOWN}",)
