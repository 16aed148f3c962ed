"""Renders the pages with Jinja2. Every value is escaped; a variable that a template misspells is an error."""

from __future__ import annotations

import hashlib
import json
import shlex
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.model import PolicyRef
from karmada_advisor.state.model import StateName
from karmada_advisor.views import explanation_tables, explanation_text, plan_words, state, why_not
from karmada_advisor.views.fields import fields_of
from karmada_advisor.views.kubectl import patch_command
from karmada_advisor.views.text import Style
from karmada_advisor.web.fleet import ClusterState
from karmada_advisor.web.indexed_binding import IndexedBinding
from karmada_advisor.web.state import PageContents
from karmada_advisor.whatif.survive.loss import Loss
from karmada_advisor.whatif.survive.model import DomainLoss
from karmada_scheduler import __version__

STATIC: Final = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


_CLASSES: Final = {
    "First": "the first decision",
    "Reconcile": "its placement has changed",
    "Scale": "its replicas have changed",
    "Failover": "it leaves a cluster",
    "Avoid": "nothing asks for a decision",
}
"""The classes of decisions in records, for people."""


def static_files() -> Mapping[str, tuple[bytes, str]]:
    """Return content and type of the files that pages refer to, by name."""
    folder = files("karmada_advisor.web") / "static"
    return {name: ((folder / name).read_bytes(), type_) for name, type_ in STATIC.items()}


KEPT_ROWS: Final = 12_000
"""Rows of lists that are kept; a page has 100."""
_ROW_SECONDS: Final = 30.0
"""How long a row is kept: it may say how much time is left."""


def path_of(namespace: str, name: str, before: str = "/b") -> str:
    """Return the path of a page about a binding; the namespace is "" for a ClusterResourceBinding."""
    return "/".join((before, *(quote(part, safe="") for part in (namespace, name) if part)))


def cluster_path(name: str) -> str:
    """Return the path of the page about a cluster."""
    return f"/clusters/{quote(name, safe='')}"


def domain_path(domain: DomainLoss, loss: Loss = Loss.GONE) -> str:
    """Return the path of the page about the loss of a domain in a world."""
    path = f"/survive/{quote(domain.kind, safe='')}/{quote(domain.name, safe='')}"
    return path if loss is Loss.GONE else f"{path}?loss={loss.value}"


LOSSES: Final = {
    Loss.GONE: (
        "Evicted",
        "the lost clusters have a NoExecute taint, and what does not tolerate it is evicted",
    ),
    Loss.ITSELF: ("By itself", "what Karmada does automatically, by its settings"),
    Loss.DELETED: ("Deleted", "the Cluster objects are deleted; nothing is tolerated"),
}
"""The worlds after a loss: a name, and what it means."""


def query(given: Mapping[str, str], **changes: str) -> str:
    """Return the parameters of a link: those of this page with changes; empty ones are left out."""
    merged = {**given, **changes}
    text = urlencode({name: value for name, value in merged.items() if value})
    return f"?{text}" if text else "?"


def sentence(text: str) -> str:
    """Return a text that begins with a capital letter, unless its first word is a name, a field or a code."""
    first = text.partition(" ")[0].rstrip(",;:")
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


def short_time(text: str) -> str:
    """Return a time of the API as month, day, hour and minute; other texts as they are."""
    return f"{text[5:10]} {text[11:16]}" if len(text) >= 16 and text[10] == "T" else text


def commands(remedy: Any, policy: PolicyRef | None) -> str:
    """Return the commands that apply a remedy, one a line; "" unless all its patches can be applied by a person."""
    if any(edit.instead for edit in remedy.edits):
        return ""
    lines = [
        patch_command(each.object.kind, each.object.namespace, each.object.name, each.patch, policy)
        for each in remedy.apply
    ]
    return "\n".join(lines) if all(lines) else ""


@lru_cache(maxsize=1)
def _environment(static_path: str) -> Environment:
    """Return the environment of the templates; one for all pages of a process, as each compiles what it uses."""
    style = Style()
    environment = Environment(
        loader=PackageLoader("karmada_advisor.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": "{:,}".format,
        "counted": counted,
        "sentence": sentence,
        "short_time": short_time,
        "share": lambda share: "\u2013" if share is None else f"{100 * share:.0f} %",
        "placement": lambda targets, limit=6: style.fold([*map(str, targets)], limit=limit),
        "pair": lambda target: (target.name, target.replicas),
        "fold": lambda items, limit=5: style.fold(items, limit=limit),
        "shell": shlex.quote,
        "json": lambda value: json.dumps(fields_of(value), indent=2, ensure_ascii=False),
    }
    environment.globals |= {
        "static": static_path,
        "version": __version__,
        "path_of": path_of,
        "cluster_path": cluster_path,
        "domain_path": domain_path,
        "LOSSES": LOSSES,
        "query": query,
        "CLUSTER_STATES": tuple(ClusterState),
        "STATES": tuple(StateName),
        "KINDS": {"green": "good", "yellow": "wait", "red": "bad"},
        "commands": commands,
        "field_texts": plan_words.field_texts,
        "CLASSES": _CLASSES,
        "tables": explanation_tables,
        "explanation_text": explanation_text,
        "plan_words": plan_words,
        "state_words": state,
        "why_not": why_not,
        "style": style,
    }
    return environment


class Pages:
    """The templates."""

    def __init__(self) -> None:
        """Compile nothing yet; each template is compiled when it is first used."""
        self.static: Final = static_files()
        digest = hashlib.sha256(b"".join(content for content, _ in self.static.values())).hexdigest()[:12]
        self.static_path: Final = f"/static/{digest}"
        self._environment = _environment(self.static_path)

    def binding_rows(
        self,
        contents: PageContents,
        found: Iterable[IndexedBinding],
        *,
        here: str = "",
        of_namespace: bool = False,
        cause_of: Callable[[IndexedBinding], str] = lambda _: "",
    ) -> list[str]:
        """Return the rows of a list of bindings as HTML. Many people look at the same ones, so they are kept with the contents.

        Args:
            contents: What the rows are made of.
            found: The bindings.
            here: The cluster that the list is about; "" for a list of bindings anywhere.
            of_namespace: Whether all are of one namespace, which is not repeated.
            cause_of: Returns why a binding is in its state; "" if that is not known.
        """
        row_of = self._environment.get_template("macros.html").module.binding_row  # type: ignore[attr-defined]
        kept, rows, now = contents.rendered_rows, [], time.monotonic() // _ROW_SECONDS
        for binding in found:
            key = (binding.key, binding.stamp, here, of_namespace, cause := cause_of(binding), now)
            row = kept.get(key)
            if row is None:
                row = kept[key] = row_of(contents.row(binding), here, of_namespace, cause)
                while len(kept) > KEPT_ROWS:
                    kept.popitem(last=False)
            rows.append(row)
        return rows

    def render(self, name: str, values: Mapping[str, Any]) -> bytes:
        """Return a page."""
        return self._environment.get_template(name).render(values).encode()
