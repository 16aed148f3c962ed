"""What a request asks for: its query, and the form of a plan."""

from __future__ import annotations

from typing import Final, TypeVar

from karmada_advisor.web.decisions import DecisionRow
from karmada_advisor.web.fleet import ClusterFilter
from karmada_advisor.web.indexed_binding import Filter
from karmada_advisor.web.paging import MAX_LIMIT, ROWS, AskedPage
from karmada_advisor.whatif.survive.loss import Loss
from karmada_pyscheduler.client.permissions import Permission
from karmada_pyscheduler.http_server.request_guard import HttpRequest
from karmada_scheduler.structs import Struct

F = TypeVar("F", Filter, ClusterFilter)

RETRY_SECONDS: Final = 2
"""When a request that was refused for a moment is sent again."""

NO_TOKEN: Final = "The page needs a token of the Karmada API server."  # noqa: S105 (a sentence)

_CHANGES: Final = ("without", "cordon", "uncordon", "scale")


class AskedChange(Struct, frozen=True):
    """A change to plan.

    Attributes:
        text: Policies or other objects, as YAML; "" for none.
        flags: Further parts, as the command has them: ``--without=eu-west-3``.
    """

    text: str = ""
    flags: tuple[str, ...] = ()


class RequestRefusedError(Exception):
    """A request that cannot be answered; the text says why."""

    def __init__(self, status: int, text: str, missing: tuple[Permission, str] | None = None) -> None:
        """Take the HTTP status and a sentence, and the permission that is missing in a namespace, "" for all."""
        super().__init__(text)
        self.status, self.missing = status, missing


def loss_of(request: HttpRequest) -> Loss:
    """Return the world that a request asks about.

    Raises:
        RequestRefusedError: There is no such world.
    """
    asked = request.query.get("loss", Loss.GONE.value)
    try:
        return Loss(asked)
    except ValueError:
        words = ", ".join(each.value for each in Loss)
        raise RequestRefusedError(400, f"loss must be one of {words}") from None


def change_of(request: HttpRequest) -> AskedChange:
    """Return the change of a request: the text of a policy, and flags as the command has them."""
    if "policy" in request.query:
        text = (
            "send a policy in the body of a POST request, so that no history and no log has it in an address"
        )
        raise RequestRefusedError(400, text)
    given = {**request.query, **request.form}
    flags = [f"--{name}={value}" for name in _CHANGES if (value := given.get(name, "").strip())]
    return AskedChange(request.form.get("policy", "").replace("\r", "").strip(), tuple(flags))


def page_of(request: HttpRequest) -> AskedPage:
    """Return which rows of a list a request asks for."""
    return AskedPage(
        request.query.get("after", ""),
        request.query.get("before", ""),
        number_of(request, "limit", ROWS, most=MAX_LIMIT),
    )


def filter_of(kind: type[F], request: HttpRequest, **known: str) -> F:
    """Return a filter with the fields of the query; ``q`` is its text, and ``known`` are fields that the query does not say."""
    names = {name: "q" if name == "text" else name for name in kind.__struct_fields__}
    given = {name: request.query.get(parameter, "").strip() for name, parameter in names.items()}
    return kind(**given | known)


def is_wanted(row: DecisionRow, request: HttpRequest) -> bool:
    """Return whether a request asks for a decision."""
    text = request.query.get("q", "").strip().lower()
    namespace, reason = request.query.get("namespace", ""), request.query.get("reason", "")
    cluster = request.query.get("cluster", "").strip()
    return (
        (not text or text in str(row).lower())
        and (not namespace or row.namespace == namespace)
        and (not reason or row.reason == reason)
        and (not cluster or any(each.name == cluster for each in row.placement or ()))
    )


def number_of(request: HttpRequest, name: str, default: int, *, most: int = 9_999_999) -> int:
    """Return a number of the query. Raises RequestRefusedError."""
    text = request.query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 8 and 0 < int(text) <= most):
        raise RequestRefusedError(400, f"{name} must be a number from 1 to {most}")
    return int(text)
