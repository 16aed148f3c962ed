"""Steps that are taken at the moment at which they hurt, on the object that is concerned.

Moments:

- ``in flight``: the leader has taken a binding from its queue, and the attempt has not ended.
- ``sent``: a scheduler has sent a result. It is about the last cluster that the result adds to the binding.
- ``placed``: a scheduler's result is stored, and its status is not written yet.
- ``reported``: a scheduler's status is stored, so the binding was just decided.
- ``elected``: another scheduler has got the Lease.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson

from karmada_pyscheduler.scheduling_queue.queue import PROCESSING
from karmada_scheduler.api.binding import BindingKey
from tools.apiserver_model import Write
from tools.simulation.bindings import BINDING_KINDS, name_of
from tools.simulation.network import Sent

if TYPE_CHECKING:
    from tools.simulation.run import Run


@dataclass(frozen=True, slots=True)
class _Aim:
    moment: str
    until: float
    delay: float
    action: str
    arguments: dict[str, Any]


class Aims:
    """The steps that wait for their moment; each is taken once."""

    def __init__(self, run: Run, take: Callable[[str, dict[str, Any]], None]) -> None:
        """Take steps by ``take``."""
        self._run = run
        self._take = take
        self._waiting: list[_Aim] = []
        self._holder = ""
        run.model.observers.append(self._on_write)

    def wait(self, moment: str, seconds: float, delay: float, action: str, arguments: dict[str, Any]) -> None:
        """Take an action some seconds after the next such moment, unless that does not come in time.

        The action is about the object of the moment, unless its arguments name another; after ``elected`` they must, or
        the action needs none.
        """
        until = self._run.simulation.now + seconds
        self._waiting.append(_Aim(moment, until, delay, action, arguments))

    def after_step(self) -> None:
        """Look for attempts of the leader that have not ended."""
        if not any(each.moment == "in flight" for each in self._waiting):
            return
        leader = self._run.leader()
        if leader is None or leader.application is None:
            return
        state = leader.application.state
        if not state.queue.processing:
            return
        for binding in state.bindings:
            if state.queue.state_of(binding.key).state == PROCESSING:
                self._reached("in flight", _name_of(binding.key))

    def on_request(self, sent: Sent) -> None:
        """Look for a result that a scheduler sends."""
        if sent.kind in _RESULTS and any(each.moment == "sent" for each in self._waiting):
            clusters = (orjson.loads(sent.request.body).get("spec") or {}).get("clusters") or ()
            stored = self._run.model.get(*_id_of(sent.request.path))
            before = {each["name"] for each in (stored or {"spec": {}})["spec"].get("clusters") or ()}
            if added := [each["name"] for each in clusters if each["name"] not in before]:
                self._reached("sent", added[-1])

    def _on_write(self, write: Write) -> None:
        if write.request is None or write.after is None:
            return
        if write.kind == "Lease":
            holder = orjson.loads(write.after)["spec"].get("holderIdentity") or ""
            if holder and holder != self._holder:
                self._holder = holder
                self._reached("elected", "")
        elif write.kind in BINDING_KINDS:
            self._reached("reported" if write.subresource else "placed", name_of(write.kind, *write.key))

    def _reached(self, moment: str, name: str) -> None:
        """Take all steps that wait for a moment, which is about an object."""
        now = self._run.simulation.now
        self._waiting = [each for each in self._waiting if each.until > now]
        for aim in [each for each in self._waiting if each.moment == moment]:
            self._waiting.remove(aim)
            arguments = {"name": name, **aim.arguments} if name and aim.arguments else aim.arguments
            self._run.simulation.after(aim.delay, partial(self._take, aim.action, arguments))


_RESULTS: Final = ("PATCH resourcebindings", "PATCH clusterresourcebindings")


def _id_of(path: str) -> tuple[str, str, str]:
    """Return the kind, the namespace and the name of the binding that a path names."""
    *_, namespace, resource, name = path.split("/")
    return ("ResourceBinding", namespace, name) if resource == "resourcebindings" else (
        "ClusterResourceBinding", "", name,
    )  # fmt: skip


def _name_of(key: BindingKey) -> str:
    return name_of(key.kind, key.namespace, key.name)
