"""Causes that the process which decides has recorded, for a process with plugins whose code is not here."""

from __future__ import annotations

from collections.abc import Iterator

from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.explain.situation import Situation
from karmada_advisor.state.stored import mapping, mappings


def of_record(situation: Situation) -> Iterator[Cause]:
    """Yield what the last record says, and why nothing is decided again."""
    inputs = situation.inputs
    record = mapping(inputs.process and inputs.process.record)
    attempts = mappings(record.get("attempts"))
    error = mapping(record.get("error"))
    at = str(record.get("at") or "")
    refused = mappings(attempts[-1].get("refused")) if attempts and error else []
    for each in sorted(refused, key=lambda found: found.get("by") not in inputs.missing):
        plugin, why, count = str(each.get("by") or ""), str(each.get("why") or ""), each.get("count")
        total = mapping(attempts[-1].get("stages")).get("all")
        evidence = {"plugin": plugin, "reason": why, "count": count, "of": total, "at": at}
        text = f"{count} of {total} clusters were refused by {plugin} at {at}: {why}"
        yield Cause("RecordedRefusal", Stage.FILTER, evidence, text)
    if error and not attempts:
        message = str(error.get("message") or "")
        yield Cause("RecordedFailure", Stage.FILTER, {"message": message, "at": at}, f"at {at}: {message}")
    if not inputs.missing:
        return
    names = ", ".join(inputs.missing)
    flags = " ".join(f"--plugin-dir={each}" for each in inputs.plugin_dirs) or "--plugin-dir=DIR"
    text = (
        f"the process decides with {names}, whose code is not here, so nothing was decided again; bring it with {flags} (a "
        "copy of that folder)"
    )
    evidence = {"plugins": list(inputs.missing), "flags": flags}
    yield Cause("PluginCodeMissing", Stage.FILTER, evidence, text)
