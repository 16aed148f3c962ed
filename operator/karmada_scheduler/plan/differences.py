"""What differs between two versions of an object, in a few words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from karmada_scheduler.plan.objects import Manifest, part

_SHOWN: Final = 4
_CUT: Final = 60
_SPREAD: Final = "spreadConstraints"


def of_policy(old: Manifest, new: Manifest) -> str:
    """Return what differs in the spec of two versions of a policy, "" if nothing does."""
    return _joined(_differences("", part(old, "spec"), part(new, "spec")))


def of_cluster(old: Manifest, new: Manifest) -> str:
    """Return what differs in spec, labels and status of two versions of a Cluster, "" if nothing does."""
    return _joined(
        [
            *_differences("", part(old, "spec"), part(new, "spec")),
            *_differences("label", part(old, "metadata", "labels"), part(new, "metadata", "labels")),
            *_differences("", part(old, "status"), part(new, "status")),
        ]
    )


def of_binding(old: Manifest, new: Manifest) -> str:
    """Return what differs in spec and labels of two versions of a binding, "" if nothing does."""
    return of_cluster({**old, "status": None}, {**new, "status": None})


def of_template(old: Manifest, new: Manifest) -> str:
    """Return what differs in spec and labels of two versions of a template, "" if nothing does."""
    return of_binding(old, new)


def _joined(found: Iterator[str] | Sequence[str]) -> str:
    texts = list(found)
    if len(texts) <= _SHOWN + 1:
        return ", ".join(texts)
    return f"{', '.join(texts[:_SHOWN])} and {len(texts) - _SHOWN} more"


def _differences(name: str, old: Any, new: Any) -> Iterator[str]:
    """Yield a text for each value that differs; ``name`` is that of the field."""
    if old == new:
        return
    if name == _SPREAD:
        yield from _spread(old, new)
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            inner = f"{name} {key}" if name == "label" else str(key)
            yield from _differences(inner, old.get(key), new.get(key))
    elif _is_list(old) and _is_list(new):
        yield from (f"- {_shown(each, name)}" for each in old or () if each not in (new or ()))
        yield from (f"+ {_shown(each, name)}" for each in new or () if each not in (old or ()))
    elif old is None:
        yield f"+ {name} {_shown(new)}"
    elif new is None:
        yield f"- {name} {_shown(old)}"
    else:
        yield f"{name} {_shown(old)} -> {_shown(new)}"


def _is_list(value: Any) -> bool:
    return value is None or (isinstance(value, Sequence) and not isinstance(value, str))


def _spread(old: Any, new: Any) -> Iterator[str]:
    before, after = _by_field(old), _by_field(new)
    for field in dict.fromkeys([*before, *after]):
        one, other = before.get(field), after.get(field)
        if one == other:
            continue
        if one is None and other is not None:
            yield f"+ {field} {_range(other)}"
        elif other is None and one is not None:
            yield f"- {field} {_range(one)}"
        elif one is not None and other is not None:
            names = [name for name in ("minGroups", "maxGroups") if one[name] != other[name]]
            if len(names) == 1:
                yield f"{field} {names[0]} {one[names[0]]} -> {other[names[0]]}"
            else:
                yield f"{field} {_range(one)} -> {_range(other)}"


def _by_field(constraints: Any) -> dict[str, dict[str, Any]]:
    return {
        str(each.get("spreadByField") or each.get("spreadByLabel") or "cluster"): {
            "minGroups": each.get("minGroups") or 0,
            "maxGroups": each.get("maxGroups") or 0,
        }
        for each in (constraints if isinstance(constraints, Sequence) else ())
        if isinstance(each, Mapping)
    }


def _range(constraint: Mapping[str, Any]) -> str:
    return f"{constraint['minGroups']}..{constraint['maxGroups'] or ''}"


def _shown(value: Any, name: str = "") -> str:
    """Return a value in a few words; ``name`` is the field of the list that has it."""
    if isinstance(value, str):
        return _cut(f"{name} {value}".strip())
    if isinstance(value, Mapping) and {"key", "operator"} <= value.keys():
        values = value.get("values")
        shown = f" [{', '.join(map(str, values))}]" if isinstance(values, list) and values else ""
        return _cut(f"{value['key']} {value['operator']}{shown}")
    if isinstance(value, Mapping) and {"key", "effect"} <= value.keys():
        worth = f"={value['value']}" if value.get("value") else ""
        return _cut(f"taint {value['key']}{worth}:{value['effect']}")
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    except ValueError:
        text = "..."
    return _cut(f"{name} {text}".strip())


def _cut(text: str) -> str:
    text = "".join(each if each.isprintable() else "?" for each in text)
    return text if len(text) <= _CUT else text[: _CUT - 3] + "..."
