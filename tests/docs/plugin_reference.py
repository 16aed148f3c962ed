"""Writes docs/reference/plugins.md from docstrings and annotations: ``python -m tests.docs.plugin_reference``.

griffe reads the sources without importing them. This module determines what is on the page; the texts are those of the docstrings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import griffe

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "reference" / "plugins.md"
SOURCES: Final = ROOT / "plugins" / "karmada_scheduler"

_NOT_FOR_PLUGINS: Final = {
    "from_manifest",
    "with_status",
    "from_json",
    "of",
    "with_reported",
    "changed_since",
}
_CALLED_BY_AUTHORS: Final = {"FakeHandle", "BindingBuilder", "ClusterBuilder", "Group"}
POINTS: Final = "Extension points"
_SECTIONS: Final = griffe.DocstringSectionKind


class Part(NamedTuple):
    """A part of the page.

    Attributes:
        title: Its heading.
        text: The text below the heading.
        modules: By path below the package: the names that are described, in order.
    """

    title: str
    text: str
    modules: dict[str, tuple[str, ...]]


PARTS: Final = (
    Part(
        POINTS,
        "A plugin has a `name` and any of these methods. Import from `karmada_scheduler.framework`.",
        {
            "framework/plugin.py": ("Plugin",),
            "framework/binding_points.py": ("QueueSortPlugin", "SortKeyPlugin", "QueueGroupPlugin", "PreEnqueuePlugin"),
            "framework/scheduling_points.py": (
                "PreFilterPlugin", "PreFilterExtensions", "FilterPlugin", "FilterClustersPlugin", "PostFilterPlugin", "PreScorePlugin", "ScorePlugin",
                "NormalizeScorePlugin", "EstimateReplicasPlugin", "SelectPlugin", "AssignPlugin",
            ),
            "framework/evidence.py": ("EvidencePlugin", "EventsPlugin"),
            "framework/edits.py": ("EditsPlugin",),
            "framework/guard_point.py": (
                "GuardPlugin", "GuardObservationPlugin", "ReconsiderPlugin", "StartTermPlugin",
            ),
            "framework/binding_points.py#2": (
                "ReservePlugin", "PermitPlugin", "PreBindPlugin", "BindPlugin", "PostBindPlugin",
            ),
            "framework/plugin.py#2": ("ObservePlugin", "RunPlugin"),
        },
    ),
    Part(
        "Contexts",
        "The arguments of the methods. Plugins do not change them.",
        {
            "framework/binding_points.py": ("QueuedBinding", "PreEnqueueContext"),
            "framework/scheduling_points.py": (
                "PreFilterContext", "PeerContext", "FilterContext", "FilterClustersContext", "PostFilterContext", "Shortage", "PreScoreContext", "ScoreContext",
                "NormalizeScoreContext", "EstimateContext", "SelectContext", "AssignContext",
            ),
            "framework/evidence.py": ("EvidenceContext",),
            "framework/edits.py": ("EditContext",),
            "framework/guard_point.py": ("GuardContext", "ReconsiderContext"),
            "framework/binding_points.py#2": ("BindContext",),
            "framework/cycle.py": ("Cycle", "CycleState", "StateKey"),
            "framework/snapshot.py": ("Snapshot",),
            "framework/cycle.py#2": ("Candidate", "Peers"),
            "framework/diagnosis.py": ("Diagnosis",),
        },
    ),
    Part(
        "Return values",
        "The return values of the methods.",
        {
            "framework/result.py": ("Result", "Code", "SUCCESS", "SKIP"),
            "framework/scheduling_points.py": ("PreFilterAnswer", "SelectAnswer", "AssignAnswer"),
            "framework/cycle.py": ("ReplicaEstimate",),
            "framework/evidence.py": ("Evidence", "RequeueEvent", "EventKind"),
            "framework/edits.py": (
                "EditTarget", "Edit", "Side", "Harm", "PatchAction", "ObjectRef", "Path", "BECOME_READY",
            ),
            "framework/guard_point.py": ("GuardAnswer", "EvictionTask", "Proposal", "Terms"),
        },
    ),
    Part(
        "The handle",
        "Data and services of the scheduler for plugins; the second argument of a plugin's `__init__`.",
        {"framework/handle.py": ("Handle", "WaitingBinding")},
    ),
    Part(
        "Bindings",
        "What Karmada makes of a workload and its policy. All classes are read-only.",
        {
            "api/binding.py": ("Binding",),
            "api/binding_spec.py": (
                "BindingKey", "BindingSpec", "BindingStatus", "TargetCluster", "ObjectReference", "ReplicaRequirements",
                "Component", "GracefulEvictionTask", "WorkloadAffinityGroups", "ClusterHealth", "ReportedReplicas",
            ),
            "api/workload.py": ("Workload", "OwnerReference", "WorkloadAnswer"),
            "api/placement.py": (
                "Placement", "ClusterAffinity", "ClusterAffinityTerm", "OverflowAffinity", "SpreadConstraint",
                "ReplicaSchedulingStrategy", "ClusterPreferences", "StaticClusterWeight", "WorkloadAffinity",
            ),
            "api/matching.py": ("LabelSelector", "FieldSelector", "Requirement", "Toleration"),
        },
    ),
    Part(
        "Clusters",
        "Member clusters, from the Cluster objects of the API server. All classes are read-only.",
        {
            "api/cluster.py": ("Cluster", "ResourceSummary", "ResourceModel", "GradeCount"),
            "api/matching.py": ("Taint",),
            "api/well_known.py": ("Condition",),
            "api/quantity.py": ("Quantity",),
        },
    ),
    Part(
        "Tests of plugins",
        "Import from `karmada_scheduler.testing`. The methods of a builder change it and return it.",
        {
            "testing/bindings.py": ("binding", "BindingBuilder"),
            "testing/clusters.py": ("cluster", "ClusterBuilder"),
            "testing/runs.py": ("schedule", "scheduling", "Circumstances", "Run"),
            "testing/trace.py": ("Step",),
            "testing/handles.py": ("FakeHandle", "Recorded"),
            "testing/setups.py": ("make", "profiles", "framework", "gates", "queue_sort"),
            "testing/decisions.py": ("decide", "placed", "filter_context", "score_context", "snapshot", "Group"),
        },
    ),
)  # fmt: skip


def rendered() -> str:
    """Return the page as it should be."""
    lines = [
        "# Plugin reference",
        "",
        "The extension points of plugins, the arguments of their methods, and the classes for their tests.",
        "[writing-plugins.md](../writing-plugins.md) explains how to write plugins. `make reference` generates this",
        "page from the code.",
    ]
    body = []
    anchors = _Anchors("Plugin reference")
    for part in PARTS:
        found = [_module(path)[name] for path, name in _names(part)]
        body += ["", f"## {part.title}", "", part.text]
        title, links = anchors.of(part.title), []
        for each in found:
            heading = f"{each.name}()" if each.is_function else each.name
            links.append(f"[{each.name}](#{anchors.of(heading)})")
            body += ["", f"### {heading}", "", *_described(each, in_full=part.title == POINTS)]
        lines += ["", f"[{part.title}](#{title}): {', '.join(links)}"]
    return "\n".join([*lines, *body]) + "\n"


class _Anchors:
    """The anchors of headings on GitHub; repeated headings have a number."""

    def __init__(self, *headings: str) -> None:
        self._seen: dict[str, int] = {}
        for each in headings:
            self.of(each)

    def of(self, heading: str) -> str:
        slug = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        count = self._seen[slug] = self._seen.get(slug, -1) + 1
        return f"{slug}-{count}" if count else slug


def _names(part: Part) -> Iterator[tuple[str, str]]:
    for path, names in part.modules.items():
        for name in names:
            yield path.partition("#")[0], name


@cache
def _module(path: str) -> griffe.Module:
    file = SOURCES / path
    name = f"karmada_scheduler.{path.removesuffix('.py').replace('/', '.')}"
    return griffe.visit(name, filepath=file, code=file.read_text(), docstring_parser=griffe.Parser.google)


def _described(found: Any, *, in_full: bool = False) -> Iterator[str]:
    """Describe a class, a function, or a name for a value; methods in a table, or ``in_full``."""
    if found.is_class:
        yield from _sentences(found, without={_SECTIONS.attributes})
        yield from _constructor(found)
        yield from _attributes(found)
        yield from _in_full(found) if in_full else _methods(found)
        return
    yield f"`{_signature(found) if found.is_function else found.value}`"
    if found.docstring is not None:
        yield ""
        yield from _sentences(found)


def _constructor(found: Any) -> Iterator[str]:
    """Describe the ``__init__`` of a class that authors of plugins and tests call."""
    init = found.functions.get("__init__")
    if init is not None and found.name in _CALLED_BY_AUTHORS:
        yield from ("", f"**`{found.name}({_parameters(init)})`**")
        if init.docstring is not None:
            yield ""
            yield from _sentences(init)


def _in_full(found: Any) -> Iterator[str]:
    for each in _methods_of(found):
        yield from ("", f"**`{_signature(each)}`**", "")
        yield from _sentences(each)


def _methods_of(found: Any) -> Iterator[Any]:
    return (
        each
        for each in found.functions.values()
        if not each.name.startswith("_") and each.name not in _NOT_FOR_PLUGINS
    )


def _attributes(found: Any) -> Iterator[str]:
    described = {
        each.name: each for section in _sections(found, _SECTIONS.attributes) for each in section.value
    }
    rows = []
    for each in (*found.attributes.values(), *_inherited(found)):
        if each.name.startswith("_") or (each.annotation is None and each.value is None):
            continue
        text = described[each.name].description if each.name in described else "\n".join(_sentences(each))
        default = None if "property" in each.labels else each.value
        shown = "" if default is None or str(default).startswith("field(") else f"`{default}`"
        type_ = "" if each.annotation is None else f"`{_type_of(each.annotation)}`"
        rows.append((f"`{each.name}`", type_, shown, _flat(text)))
    if rows:
        yield from _table(("attribute", "type", "default", "meaning"), rows)


def _type_of(annotation: object) -> str:
    """Return a type as authors need it: without what the readers of manifests have to know."""
    return re.sub(r"^Annotated\[(.+), (?:[A-Z]+|ApiField\(.*\))\]$", r"\1", str(annotation))


def _inherited(found: Any) -> Iterator[Any]:
    """Return what contexts with a cycle have of their base class."""
    if any(str(base) == "WorkloadAccess" for base in found.bases):
        base = _module("framework/workload.py")["WorkloadAccess"]
        yield from (each for each in base.attributes.values() if each.name not in found.attributes)


def _methods(found: Any) -> Iterator[str]:
    rows = [(f"`{_signature(each)}`", _flat("\n".join(_sentences(each)))) for each in _methods_of(found)]
    if rows:
        yield from _table(("method", "what it does"), rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Return a table, without columns in which nothing stands."""
    used = [index for index in range(len(header)) if any(row[index] for row in rows)]
    yield ""
    yield f"| {' | '.join(header[index] for index in used)} |"
    yield "|" + "---|" * len(used)
    for row in rows:
        yield f"| {' | '.join(row[index].replace('|', chr(92) + '|') for index in used)} |"


def _sections(found: Any, *kinds: griffe.DocstringSectionKind) -> Iterable[Any]:
    if found.docstring is None:
        return ()
    options = {"returns_named_value": False, "returns_multiple_items": False, "warn_unknown_params": False}
    return (each for each in found.docstring.parse(**options) if not kinds or each.kind in kinds)


def _sentences(found: Any, *, without: Iterable[griffe.DocstringSectionKind] = ()) -> Iterator[str]:
    """Return the text of a docstring as Markdown; arguments and errors as lists."""
    for section in _sections(found):
        if section.kind in without:
            continue
        if section.kind is _SECTIONS.text:
            paragraphs = section.value.split("\n\n")
            yield _plain("\n\n".join(each for each in paragraphs if not each.startswith("Source:")))
        elif section.kind is _SECTIONS.returns:
            [returned] = section.value
            own = returned.annotation if isinstance(returned.annotation, str) else None
            yield _plain(f"\nReturns: {f'{own}: ' if own else ''}{returned.description}")
        elif section.kind in (_SECTIONS.parameters, _SECTIONS.raises, _SECTIONS.attributes):
            yield ""
            for each in section.value:
                raises = section.kind is _SECTIONS.raises
                name = f"Raises `{each.annotation}`" if raises else f"`{each.name}`"
                yield _plain(f"- {name}: {' '.join(each.description.split())}")


def _plain(text: str) -> str:
    return text.replace("``", "`")


def _flat(text: str) -> str:
    """Return a text as one line, for a cell of a table."""
    return " ".join(_plain(text).replace("\n- ", " ").split())


def _signature(function: Any) -> str:
    returns = "" if str(function.returns) in ("Self", "None") else f" -> {function.returns}"
    prefix = "async " if "async" in function.labels else ""
    prefix += f"{function.parent.name}." if "classmethod" in function.labels else ""
    return re.sub(r"\s+", " ", f"{prefix}{function.name}({_parameters(function)}){returns}")


def _parameters(function: Any) -> str:
    shown, keyword_only = [], False
    for each in function.parameters:
        if each.name in ("self", "cls"):
            continue
        kind = each.kind
        stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(
            kind, ""
        )
        keyword_only = keyword_only or stars == "*"
        if kind is griffe.ParameterKind.keyword_only and not keyword_only:
            shown.append("*")
            keyword_only = True
        annotation = "" if each.annotation is None else f": {_type_of(each.annotation)}"
        default = "" if each.default is None or stars else f" = {each.default}"
        shown.append(f"{stars}{each.name}{annotation}{default}")
    return ", ".join(shown)


if __name__ == "__main__":
    PAGE.write_text(rendered())
    print(PAGE)
