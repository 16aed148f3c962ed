"""The objects that a page shows, as they were read at one time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from karmada_advisor.state.reading import Facts
from karmada_advisor.web.bindings import BindingRow, row_of
from karmada_advisor.web.index import BindingIndex
from karmada_advisor.web.indexed_binding import IndexedBinding, indexed
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.structs import Struct, field


class PageContents(Struct, frozen=True, eq=False, dict=True):
    """Clusters and bindings; a reading without a difference keeps them, with all that was computed from them.

    Attributes:
        objects: What the commands read, for those who compute answers.
        facts: What is stored besides the bindings.
        manifests: Bindings by key, and clusters by name, as they were read.
        taint_policies: ClusterTaintPolicies; None if they are not known.
        watched: The index that watches update; None for one of these bindings.
        rendered_rows: Rows of lists as HTML, which later contents may have, too; ``Pages.binding_rows`` puts them there.
    """

    clusters: Sequence[Cluster]
    bindings: Sequence[Binding]
    objects: Any = None
    facts: Facts = field(default_factory=Facts)
    manifests: Mapping[Any, Mapping[str, Any]] = field(default_factory=dict)
    taint_policies: Sequence[Mapping[str, Any]] | None = None
    watched: BindingIndex | None = None
    rendered_rows: OrderedDict[tuple[object, ...], str] = field(default_factory=OrderedDict)

    @cached_property
    def cluster_by_name(self) -> Mapping[str, Cluster]:
        """The clusters by name."""
        return {each.name: each for each in self.clusters}

    @cached_property
    def index(self) -> BindingIndex:
        """The bindings in lists, counted."""
        if self.watched is not None:
            return self.watched
        return BindingIndex(
            indexed(each, self.manifests.get(each.key), self.facts)
            for each in {each.key: each for each in self.bindings}.values()
        )

    def row(self, found: IndexedBinding) -> BindingRow:
        """Return what is shown of a binding; made for each page, because it takes more memory than the object."""
        return row_of(found.binding, self.manifests.get(found.key), self.facts)


class PageState(Struct, frozen=True, eq=False):
    """What was read last.

    Attributes:
        number: Grows with every reading that differs from the one before.
        source: For people: "files", or the URL of the API server.
        read_at: When.
        contents: The objects.
        problems: What could not be read, one line each.
        failure: Why the reading after it has failed, so that the objects are those of before; "" if it has not.
    """

    number: int
    source: str
    read_at: datetime
    contents: PageContents
    problems: Sequence[str] = ()
    failure: str = ""
