"""Whether plans come true on a real control plane: ``python -m tools.plan_check --bindings N``.

Each change is planned by a user who may only get and list, then made, and each binding is compared once nothing moves any
more. Karmada's own controllers derive the bindings; our scheduler decides. Ends with status 1 if a binding differs, or if
the audit log has a write of the user who plans.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import requests

from karmada_scheduler.core.algorithms.webster import prefers_descending_names
from tools.check_frame import on_control_plane, parser, report_of
from tools.controlplane import ControlPlane
from tools.controlplane.ours import start_scheduler
from tools.controlplane.parallel import in_parallel
from tools.manifests import namespace
from tools.plan_check.compare import Outcome, happened, has_failed, predicted
from tools.plan_check.objects import (
    NAMESPACE,
    SCHEDULER,
    Change,
    Manifest,
    changes,
    deployment,
    members,
    policies,
)

_USER: Final = "planner"
_BINDINGS: Final = f"/apis/work.karmada.io/v1alpha2/namespaces/{NAMESPACE}/resourcebindings"
_REST_SECONDS: Final = 8.0
_TIMEOUT_SECONDS: Final = 900.0
_LISTS: Final = 3
_LATER_NAME: Final = "0"
"""A uid with which ties go to the later name; without one they go to the earlier."""
_READ: Final = {
    "cluster.karmada.io": ["clusters"],
    "work.karmada.io": ["resourcebindings", "clusterresourcebindings"],
    "policy.karmada.io": [
        "propagationpolicies",
        "clusterpropagationpolicies",
        "clustertaintpolicies",
        "federatedresourcequotas",
    ],
    "coordination.k8s.io": ["leases"],
    "apps": ["deployments"],
}


class Check:
    """A control plane with workloads, on which changes are made one after the other.

    Attributes:
        different: The bindings that differ from a plan, so far.
        plane: The control plane.
        kubeconfig: Of a user who may only get and list.
    """

    def __init__(self, plane: ControlPlane, count: int) -> None:
        """Take a control plane that has members and a scheduler.

        Args:
            plane: The control plane.
            count: How many Deployments to create.
        """
        self.different = 0
        self.plane, self._count = plane, count
        self.kubeconfig = plane.kubeconfig_of_reader(_USER, _READ.items())

    def prepare(self) -> None:
        """Create policies and workloads, and wait until they are placed."""
        self.plane.client.create(namespace(NAMESPACE))
        for each in self.policies():
            self.plane.client.apply(each)
        in_parallel(self.plane.client.apply, [self.deployment(number) for number in range(self._count)])
        self.settled(at_least=self._count)

    def policies(self) -> list[Manifest]:
        """Return all policies as they are at first."""
        return policies()

    def deployment(self, number: int) -> Manifest:
        """Return a Deployment by its number."""
        return deployment(number)

    def check(self, change: Change) -> None:
        """Plan a change, make it, and compare."""
        before = self.settled()
        started = time.monotonic()
        plan = self._plan(change, change.files)
        planned = time.monotonic() - started
        other = (
            self._plan(change, [_with_uid(each, _LATER_NAME) for each in change.files])
            if change.creates
            else plan
        )
        change.make(self.plane)
        after = self.settled(at_least=plan["total"])
        wanted, found = predicted(plan, before), happened(before, after)
        wanted |= {
            name: each
            for name, each in predicted(other, before).items()
            if _takes_the_later_name(after.get(name))
        }
        wrong = {name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)}
        self.different += len(wrong)
        classes = ", ".join(f"{count} {name}" for name, count in plan["counts"].items() if count)
        print(
            f"{change.name}: {classes}; planned in {planned:.1f} s; {len(found)} bindings, {len(wrong)} different"
        )
        print(f"  {dict(Counter(each.effect for each in found.values()))}", flush=True)
        for name in sorted(wrong)[:10]:
            print(
                f"  {name}: planned {_shown(wanted.get(name))}, became {_shown(found.get(name))}", flush=True
            )

    def writes(self) -> int:
        """Return how many writes of the user who plans the audit log has."""
        return sum(each["verb"] not in {"get", "list", "watch"} for each in self.plane.requests(_USER))

    def _plan(self, change: Change, files: Sequence[Manifest]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "change.json"
            path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(files)}))
            named = ["-f", str(path)] if files else []
            return report_of(
                "plan", f"--kubeconfig={self.kubeconfig}", *named, *change.flags,
                f"--scheduler-name={SCHEDULER}", "--fail-on=none",
            )  # fmt: skip

    def _bindings(self) -> dict[str, Manifest]:
        """Return all bindings by name; on a busy machine a long answer may be cut off, and is asked for again."""
        for _ in range(_LISTS):
            with contextlib.suppress(requests.RequestException):
                return {each["metadata"]["name"]: each for each in self.plane.client.list(_BINDINGS)}
        return {each["metadata"]["name"]: each for each in self.plane.client.list(_BINDINGS)}

    def settled(self, *, at_least: int = 0) -> dict[str, Manifest]:
        """Return the bindings by name, once all are scheduled and nothing of that has changed for some seconds."""
        deadline, last, since = time.monotonic() + _TIMEOUT_SECONDS, "", time.monotonic()
        while True:
            self.plane.check()
            found = self._bindings()
            state = json.dumps([[name, each["spec"], each["status"].get("conditions")] for name, each in found.items()]
                               if all("status" in each for each in found.values()) else time.monotonic())  # fmt: skip
            is_done = len(found) >= at_least and all(map(_is_settled, found.values()))
            if state != last or not is_done:
                last, since = state, time.monotonic()
            elif time.monotonic() - since > _REST_SECONDS:
                return found
            if time.monotonic() > deadline:
                waiting = [name for name, each in found.items() if not _is_settled(each)]
                raise SystemExit(
                    f"{len(found)} bindings after {_TIMEOUT_SECONDS:.0f} s, not settled: {waiting[:5]}"
                )
            time.sleep(1)


def _is_settled(binding: Manifest) -> bool:
    status = binding.get("status") or {}
    is_observed = status.get("schedulerObservedGeneration") == binding["metadata"]["generation"]
    return has_failed(binding) or (is_observed and bool(status.get("conditions")))


def _with_uid(manifest: Manifest, uid: str) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "uid": uid}}


def _takes_the_later_name(binding: Manifest | None) -> bool:
    """Return whether ties between clusters go to the later name, which the uid of the workload decides."""
    return binding is not None and prefers_descending_names(binding["spec"]["resource"].get("uid", ""))


def _shown(outcome: Outcome | None) -> str:
    return "nothing" if outcome is None else f"{outcome.effect} {outcome.targets}"


def main() -> int:
    """Run the command; returns the exit status."""
    made = parser("make check-plan", __doc__, folder="plan-check")
    made.add_argument(
        "--bindings", type=int, default=1000, help="Deployments to create (default: %(default)s)"
    )
    options = made.parse_args()

    def check(folder: Path) -> bool:
        with ControlPlane(folder, audit_log=True) as plane:
            plane.add(*members())
            start_scheduler(plane, name=SCHEDULER)
            made = Check(plane, options.bindings)
            made.prepare()
            print(f"{options.bindings} bindings are placed", flush=True)
            for change in changes(options.bindings):
                made.check(change)
            writes = made.writes()
        print(f"{made.different} different, {writes} writes of the user who plans")
        return not (made.different or writes)

    return on_control_plane(options.folder, check)


if __name__ == "__main__":
    sys.exit(main())
