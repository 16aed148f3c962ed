"""Which bindings and workloads a name or a label selector means that a person gives.

Source: k8s.io/apimachinery v0.35.3 pkg/labels/selector.go, for selectors as kubectl takes them: ``app=web,tier in (a,b),!canary,cpus>3``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, RESOURCE_BINDING, BindingKey
from karmada_scheduler.api.matching import EXISTS, IN, Requirement, Test, conjunction
from karmada_scheduler.api.names import nearest
from karmada_scheduler.structs import Struct

_SHOWN: Final = 3
"""Names that are suggested."""

_ENDS: Final = ("", "s", ".work.karmada.io", "s.work.karmada.io")
_KINDS: Final = (RESOURCE_BINDING, CLUSTER_RESOURCE_BINDING)
_SHORT_NAMES: Final = dict(zip(("rb", "crb"), _KINDS, strict=True)) | {
    f"{kind.lower()}{end}": kind for kind in _KINDS for end in _ENDS
}
_WORKLOADS: Final = {
    "deploy": "deployment",
    "sts": "statefulset",
    "ds": "daemonset",
    "rs": "replicaset",
    "po": "pod",
    "cm": "configmap",
    "svc": "service",
    "cj": "cronjob",
}
"""kubectl's short names."""

_API_VERSIONS: Final = {
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"), "apps/v1"),
    **dict.fromkeys(("Job", "CronJob"), "batch/v1"),
    **dict.fromkeys(
        ("Pod", "ConfigMap", "Secret", "Service", "ServiceAccount", "PersistentVolumeClaim"), "v1"
    ),
    "Ingress": "networking.k8s.io/v1",
}
"""The kinds of workloads that are read to explain why they have no binding."""

_PLURALS: Final = frozenset(f"{kind}s" for kind in (*_WORKLOADS.values(), "job", "secret"))


_WORD: Final = r"[^\s=!(),<>]+"
_REQUIREMENT: Final = re.compile(
    rf"\s*(?:!\s*(?P<absent>{_WORD})|(?P<key>{_WORD})\s*(?:(?P<operator>==|=|!=|>|<)\s*(?P<value>(?:{_WORD})?)"
    rf"|(?<=\s)(?P<set>in|notin)\s*\((?P<values>[^=!()<>]*)\))?)\s*(?:,(?=\s*\S)|$)"
)
_OPERATORS: Final[Mapping[str | None, str]] = {
    None: EXISTS, "=": IN, "==": IN, "in": IN, "!=": "NotIn", "notin": "NotIn", ">": "Gt", "<": "Lt"
}  # fmt: skip


class NoSuchBindingError(NoAnswerError):
    """There is no such binding; the text names the nearest ones."""


def does_not_exist(wanted: BindingKey, known: Iterable[BindingKey]) -> str:
    """Return that a binding does not exist, where one of its name is, and which of the known names are like it."""
    text, keys = f"{wanted.display} does not exist", list(known)
    elsewhere = sorted({key.namespace for key in keys if key.name == wanted.name and key.namespace})
    if elsewhere:
        return f"{text}. There is one in namespace {', '.join(elsewhere)}"
    candidates = sorted({key.name for key in keys if key.namespace in {wanted.namespace, ""}})
    # The name of a workload is the beginning of its binding's.
    longer = [name for name in candidates if name.startswith(f"{wanted.name}-")]
    near = longer[:_SHOWN] or get_close_matches(wanted.name, candidates, n=_SHOWN)
    near = near or [*filter(None, [nearest(str(wanted), {str(key) for key in keys})])]
    return f"{text}. Nearest: {', '.join(near)}" if near else text


class NamedBinding(Struct, frozen=True):
    """A binding, or the workload that it propagates, as a person names it.

    Attributes:
        name: ``NAME`` of a binding or of a workload of any kind, ``rb/NAME``, ``crb/NAME`` (also with the long names), or ``KIND/NAME`` of a workload,
            whose binding Karmada names ``NAME-kind``.
        namespace: Of a ResourceBinding.
        is_namespace_given: Whether the namespace was given. If not, ``A/B`` may also mean the binding B in the namespace A, and files
            may have the name in another namespace.

    Source: karmada v1.18.2 pkg/util/names/names.go GenerateBindingName.
    """

    name: str
    namespace: str
    is_namespace_given: bool = True

    @property
    def group(self) -> str:
        """The API group of ``KIND.GROUP/NAME``; "" if none is given, so that any is meant."""
        kind = self.name.rpartition("/")[0].lower()
        return "" if kind in _SHORT_NAMES else kind.partition(".")[2]

    @property
    def keys(self) -> list[BindingKey]:
        """The keys that it may have, the most probable first, without that of ``other_reading``."""
        kind, _, rest = self.name.rpartition("/")
        known = _SHORT_NAMES.get(kind.lower())
        if kind and not known:
            rest = f"{rest.replace(':', '.')}-{singular(kind)}".lower()
        namespaced = BindingKey(RESOURCE_BINDING, self.namespace, rest)
        found = [namespaced, BindingKey(CLUSTER_RESOURCE_BINDING, "", rest)]
        return [key for key in found if key.kind == known] or found

    @property
    def other_reading(self) -> BindingKey | None:
        """The key if ``A/B`` means the binding B in the namespace A; None if it cannot."""
        kind, _, rest = self.name.rpartition("/")
        is_open = bool(kind) and not self.is_namespace_given and kind.lower() not in _SHORT_NAMES
        return BindingKey(RESOURCE_BINDING, kind, rest) if is_open else None

    def of_workload(self, known: Iterable[BindingKey]) -> BindingKey | None:
        """Return the binding of the only workload, of any kind, that has this name; None if none has, or a kind is given.

        Raises:
            NoSuchBindingError: Workloads of several kinds have it.
        """
        namespace, _, name = self.name.rpartition("/")
        if namespace and self.other_reading is None:
            return None
        scopes, own = {namespace or self.namespace, ""}, name.replace(":", ".")
        found = sorted(key for key in known if key.namespace in scopes and key.name.rpartition("-")[0] == own)
        if len(found) > 1:
            shown = ", ".join(key.name for key in found)
            raise NoSuchBindingError(f"{self.name} has several bindings: {shown}. Name one of them")
        return found[0] if found else None

    @property
    def ambiguity(self) -> str:
        """What to say if both readings of ``A/B`` exist."""
        kind, _, rest = self.name.rpartition("/")
        return (
            f"{self.name} is the {singular(kind)} {rest} in the namespace {self.namespace}, and the binding {rest} in the "
            f"namespace {kind}. Write {self.namespace}/{self.name}, or -n {kind} {rest}"
        )

    def chosen(self, key: BindingKey) -> NamedBinding:
        """Return what names the binding that was found."""
        if key == self.other_reading:
            return NamedBinding(key.name, key.namespace)
        return NamedBinding(self.name, key.namespace or self.namespace)


def named_binding(written: str, namespace: str, default: str) -> NamedBinding:
    """Return what a person has written, with its namespace.

    Args:
        written: ``NAME``, ``KIND/NAME``, ``NS/NAME`` or ``NS/KIND/NAME``.
        namespace: Of ``-n``; "" if it was not given.
        default: The namespace if none is given.

    Raises:
        NoSuchBindingError: It has too many parts, or two namespaces.
    """
    parts = written.split("/")
    if len(parts) > 3 or not all(parts):
        raise NoSuchBindingError(f"{written}: expected NAME, KIND/NAME, NS/NAME or NS/KIND/NAME")
    if len(parts) == 3:
        if namespace not in {"", parts[0]}:
            raise NoSuchBindingError(f"{written} is in the namespace {parts[0]}, and -n names {namespace}")
        return NamedBinding("/".join(parts[1:]), parts[0])
    return NamedBinding(written, namespace or default, is_namespace_given=bool(namespace))


def singular(kind: str) -> str:
    """Return a kind in the form of a binding's name, from what kubectl accepts: ``deploy``, ``deployments.apps``."""
    name = kind.lower().partition(".")[0]
    return _WORKLOADS.get(name, name.removesuffix("s") if name in _PLURALS else name)


class WorkloadName(Struct, frozen=True):
    """A workload that a person names.

    Attributes:
        api_version: Group and version.
        kind: For example ``Deployment``.
    """

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def plural(self) -> str:
        """The resource of the kind."""
        return "ingresses" if self.kind == "Ingress" else f"{self.kind.lower()}s"


def workload_of(asked: NamedBinding) -> WorkloadName | None:
    """Return the workload of ``KIND/NAME``; None if the name is that of a binding, or the kind is not known."""
    written, _, rest = asked.name.rpartition("/")
    if not written:
        return None
    wanted = singular(written)
    kind = next((version for version in _API_VERSIONS if version.lower() == wanted), "")
    return WorkloadName(_API_VERSIONS[kind], kind, asked.namespace, rest) if kind else None


def selector_of(written: str) -> Test:
    """Return what tells whether labels match a selector; an empty one matches all.

    Raises:
        NoAnswerError: It is no selector.
    """
    found: list[Test] = []
    position = 0
    while position < len(written.rstrip()):
        match = _REQUIREMENT.match(written, position)
        test = None if match is None else _requirement(match).compile()
        if match is None or test is None:
            raise NoAnswerError(
                f"--selector: {written!r} cannot be read from {written[position:]!r} on; "
                "expected app=web, app!=web, app in (a,b), app notin (a,b), app, !app, cpus>3, cpus<3"
            )
        found.append(test)
        position = match.end()
    return conjunction(found)


def _requirement(match: re.Match[str]) -> Requirement:
    if match["absent"]:
        return Requirement(match["absent"], "DoesNotExist")
    operator = match["operator"] or match["set"]
    values = (match["value"] or match["values"] or "").split(",") if operator else ()
    return Requirement(match["key"], _OPERATORS[operator], tuple(value.strip() for value in values))
