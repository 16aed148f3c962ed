"""Which changes of a template the detector reacts to, and which of them are Karmada's own.

Source: karmada v1.18.2 pkg/util/eventfilter/eventfilter.go.
"""

from __future__ import annotations

from typing import Any, Final

from karmada_advisor.claims.template import Template

_METADATA_IGNORED: Final = frozenset({"managedFields", "resourceVersion"})
_KARMADA: Final = ".karmada.io"
_SKIP_PROPAGATION_LABEL: Final = "namespace.karmada.io/skip-auto-propagation"


def specification_changed(before: Template, now: Template) -> bool:
    """Return whether a change is one that the detector looks at; it is taken to be one if the template is not known."""
    content = _watched(now)
    return content is None or content != _watched(before)


def changed_by_karmada(before: Template, now: Template) -> bool:
    """Return whether only what Karmada itself writes has changed."""
    content = _watched(now)
    return content is not None and _of_users(content) == _of_users(_watched(before))


def _watched(template: Template) -> dict[str, Any] | None:
    """Return what the detector compares of a template before and after a change; None if it is not known."""
    if template.manifest is None:
        return None
    metadata = {
        name: value
        for name, value in (template.manifest.get("metadata") or {}).items()
        if name not in _METADATA_IGNORED
    }
    return {
        **{name: value for name, value in template.manifest.items() if name != "status"},
        "metadata": metadata,
    }


def _of_users(content: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the part of it that Karmada itself does not write."""
    if content is None:
        return None
    metadata = {name: value for name, value in content["metadata"].items() if name != "generation"}
    for field in ("labels", "annotations"):
        kept = {
            name: value
            for name, value in (metadata.pop(field, None) or {}).items()
            if _KARMADA not in name or (field == "labels" and name == _SKIP_PROPAGATION_LABEL)
        }
        if kept:
            metadata[field] = kept
    return {**content, "metadata": metadata}
