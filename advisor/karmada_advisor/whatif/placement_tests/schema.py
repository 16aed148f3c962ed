"""The JSON schema of a file of placement tests; editors show its descriptions, and the reader takes its keys from here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import orjson

from karmada_advisor.whatif.plan.model import Effect
from karmada_scheduler.config import features
from karmada_scheduler.config.decision_rules import RULES
from karmada_scheduler.core.classify import ScheduleType

OF_STEPS: Final = {"effect": "state", "stops": "placement"}
"""Expectations that compare with what there was before, and with what of it."""

_REFUSED: Final = ("undecided",)
"""A class of ``plan`` that a test calls ``notPlaced: OtherScheduler``."""


def _schema() -> dict[str, Any]:
    """Return the schema of ``schema.json``, with the values that the product defines."""
    found: dict[str, Any] = orjson.loads(Path(__file__).with_name("schema.json").read_bytes())
    definitions = {name: each["properties"] for name, each in found["$defs"].items() if "properties" in each}
    for component in ("Scheduler", "ControllerManager"):
        gates = definitions[component]["featureGates"]["properties"]
        gates.update({name: {"type": "boolean"} for name in features.KNOWN})
    definitions["Scheduler"]["decisionsOf"]["enum"] = list(RULES)
    expectation = definitions["Expectation"]
    expectation["type"]["enum"] = [each.value for each in ScheduleType]
    expectation["effect"]["enum"] = [each.value for each in Effect if each.value not in _REFUSED]
    found["$defs"]["Step"]["properties"] = {**definitions["Changes"], **definitions["Step"]}
    return found


SCHEMA: Final = _schema()


def keys_of(definition: str) -> tuple[str, ...]:
    """Return the keys of a definition, "" for those of a file."""
    found = SCHEMA if not definition else SCHEMA["$defs"][definition]
    return tuple(found["properties"])


WORDS: Final = keys_of("Changes")
"""The words of ``given`` and ``then``."""
