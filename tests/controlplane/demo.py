"""The demo: karmada-scheduler and this project's scheduler side by side on one real control plane.

It ends with status 0 only if each scheduler placed exactly what was its own, where the
policy wanted it, and the members report it.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import binaries
from .api import Object
from .controlplane import ControlPlane
from .demo_objects import CASES, DEFAULT, MINE, NAMESPACE, Case
from .fleet import real_members, simulated_members
from .ours import start_scheduler
from .processes import ProcessDiedError
from .table import table
from .waiting import WaitTimeoutError
from .workspace import DEFAULT as WORKSPACES
from .workspace import WorkspaceError, workspace

BINDINGS = f"/apis/work.karmada.io/v1alpha2/namespaces/{NAMESPACE}/resourcebindings"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases"


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that must be so."""

    what: str
    expected: object
    found: object

    @property
    def holds(self) -> bool:
        """Whether it is so."""
        return self.expected == self.found


@dataclass(frozen=True, slots=True)
class Write:
    """One accepted patch of a binding."""

    user: str
    placement: bool  # whether it wrote spec.clusters


@dataclass(frozen=True, slots=True)
class Seen:
    """What the API servers say about one case."""

    case: Case
    binding: Object
    events: Sequence[Object]  # ScheduleBinding* on the binding, oldest first
    writes: Sequence[Write]  # oldest first
    members: Mapping[str, str]  # member to "ready/replicas"

    @property
    def placed(self) -> dict[str, int]:
        """Where the binding says its replicas are to run."""
        return {item["name"]: item.get("replicas", 0) for item in self.binding["spec"].get("clusters", [])}

    @property
    def reporters(self) -> list[str]:
        """Who reported having scheduled it."""
        return sorted({event["source"].get("component", "") for event in self.events})

    @property
    def placers(self) -> list[str]:
        """API users who wrote its placement."""
        return sorted({write.user for write in self.writes if write.placement})

    @property
    def schedulers(self) -> list[str]:
        """Those of the two schedulers' users who wrote anything to it at all."""
        return sorted({write.user for write in self.writes} & {case.user for case in CASES})

    def condition(self, kind: str) -> Object:
        """Return one condition of the binding, empty if it is not there."""
        conditions: list[Object] = self.binding.get("status", {}).get("conditions") or []
        return next((item for item in conditions if item["type"] == kind), {})

    def claims(self) -> Iterator[Claim]:
        """Yield all that must be so for this case."""
        case, name = self.case, self.case.name
        spec, status = self.binding["spec"], self.binding.get("status", {})
        yield Claim(f"{name}: the binding belongs to", case.belongs_to, spec.get("schedulerName"))
        found = case.expected if case.as_expected(self.placed) else shown(self.placed)
        yield Claim(f"{name}: placement", case.expected, found)
        yield Claim(f"{name}: reported as scheduled by", [case.belongs_to], self.reporters)
        yield Claim(f"{name}: API users who wrote the placement", [case.user], self.placers)
        yield Claim(f"{name}: schedulers that wrote anything", [case.user], self.schedulers)
        yield Claim(f"{name}: Scheduled", ("True", "Success"), brief(self.condition("Scheduled")))
        yield Claim(
            f"{name}: FullyApplied", ("True", "FullyAppliedSuccess"), brief(self.condition("FullyApplied"))
        )
        yield Claim(
            f"{name}: generation the scheduler has seen",
            self.binding["metadata"]["generation"],
            status.get("schedulerObservedGeneration"),
        )
        reasons = sorted({event["reason"] for event in self.events})
        yield Claim(f"{name}: kinds of events", ["ScheduleBindingSucceed"], reasons)
        text = self.events[-1]["message"] if self.events else ""
        told = {item.strip() for item in text.rpartition("{")[2].rstrip("}").split(",")}
        yield Claim(f"{name}: the event names", {f"{k}:{v}" for k, v in self.placed.items()}, told)
        running = {member: f"{count}/{count}" for member, count in self.placed.items()}
        yield Claim(f"{name}: ready in members", running, dict(self.members))


def look(karmada: ControlPlane) -> list[Seen]:
    """Read everything the demo reports, from the API servers."""
    events = [event for event in karmada.client.list(EVENTS) if event["reason"].startswith("ScheduleBinding")]
    works = karmada.client.list("/apis/work.karmada.io/v1alpha1/works")
    deployed = {name: member.client.list(DEPLOYMENTS) for name, member in karmada.members.items()}
    seen = []
    for case in CASES:
        binding = karmada.client.get(f"{BINDINGS}/{case.name}-deployment")
        uid = binding["metadata"]["uid"]
        seen.append(
            Seen(
                case=case,
                binding=binding,
                events=[event for event in events if event["involvedObject"].get("uid") == uid],
                writes=_writes(karmada, binding["metadata"]["name"]),
                members={**_running(case, deployed), **_pretended(case, works, karmada)},
            )
        )
    return seen


def _running(case: Case, deployed: Mapping[str, Sequence[Object]]) -> dict[str, str]:
    """Return ready/wanted of the case's Deployment in each real member that has it."""
    return {
        member: f"{item.get('status', {}).get('readyReplicas', 0)}/{item['spec']['replicas']}"
        for member, items in deployed.items()
        for item in items
        if item["metadata"]["name"] == case.name
    }


def _pretended(case: Case, works: Sequence[Object], karmada: ControlPlane) -> dict[str, str]:
    """Return the same for simulated members, from the Works that were sent to them and answered."""
    found = {}
    for work in works:
        member = work["metadata"]["namespace"].removeprefix("karmada-es-")
        manifest = work["spec"]["workload"]["manifests"][0]
        if member not in karmada.simulated or manifest["metadata"]["name"] != case.name:
            continue
        reports = work.get("status", {}).get("manifestStatuses") or [{}]
        ready = reports[0].get("status", {}).get("readyReplicas", 0)
        found[member] = f"{ready}/{manifest['spec']['replicas']}"
    return found


def _writes(karmada: ControlPlane, binding: str) -> list[Write]:
    """Return the patches of a binding, its status included, from the API server's audit log."""
    assert karmada.audit_log is not None
    writes = []
    for line in karmada.audit_log.read_text().splitlines():
        entry = json.loads(line)
        target = entry.get("objectRef", {})
        accepted = entry.get("responseStatus", {}).get("code") == 200
        if accepted and (entry["verb"], target.get("name")) == ("patch", binding):
            spec = (entry.get("requestObject") or {}).get("spec") or {}
            writes.append(Write(entry["user"]["username"], placement="clusters" in spec))
    return writes


def claims(karmada: ControlPlane) -> list[Claim]:
    """Return all claims of the demo, as they stand now."""
    found = [claim for seen in look(karmada) for claim in seen.claims()]
    for lease, holder in (("karmada-scheduler", DEFAULT), (MINE, MINE)):
        held = karmada.client.find(f"{LEASES}/{lease}") or {"spec": {}}
        found.append(
            Claim(f"Lease {lease} is held, for {holder}", True, bool(held["spec"].get("holderIdentity")))
        )
    return found


def brief(condition: Object) -> tuple[str, str]:
    """Return a condition's status and reason."""
    return condition.get("status", ""), condition.get("reason", "")


def shown(placed: Mapping[str, int]) -> str:
    """Return a placement as text."""
    return ", ".join(f"{name}:{replicas}" for name, replicas in sorted(placed.items())) or "nowhere"


def report(karmada: ControlPlane) -> str:
    """Return the tables."""
    everything = look(karmada)
    who = table(
        (
            "DEPLOYMENT",
            "REPLICAS",
            "POLICY'S schedulerName",
            "BINDING'S",
            "PLACED BY",
            "API USER",
            "CLUSTERS",
        ),
        [
            (
                seen.case.name,
                seen.case.replicas,
                seen.case.policy_says or "(not given)",
                seen.binding["spec"].get("schedulerName", ""),
                ", ".join(seen.reporters) or "nobody",
                ", ".join(seen.placers) or "nobody",
                shown(seen.placed),
            )
            for seen in everything
        ],
    )
    what = table(
        ("DEPLOYMENT", "SCHEDULED", "EVENT FROM", "EVENT"),
        [
            (
                seen.case.name,
                " ".join(brief(seen.condition("Scheduled"))),
                event["source"].get("component", ""),
                f"{event['reason']}: {event['message']}",
            )
            for seen in everything
            for event in seen.events[-1:]
        ],
    )
    names = [*karmada.members, *karmada.simulated]
    where = table(
        ("MEMBER", "WHAT IT IS", *(seen.case.name for seen in everything)),
        [
            (
                name,
                "real: asked its API server"
                if name in karmada.members
                else "simulated: no API server, Works answered",
                *(seen.members.get(name, "-") for seen in everything),
            )
            for name in names
        ],
    )
    return "\n\n".join(
        (
            f"Who placed what where (replicas of a Duplicated policy count per cluster)\n\n{who}",
            f"What they said about it\n\n{what}",
            f"The Deployments as the members report them (ready/wanted)\n\n{where}",
        )
    )


def run(folder: Path, *, keep: bool) -> int:
    """Run the demo in a folder; returns the exit status."""
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - started:5.1f} s  {line}", flush=True)

    print("Two schedulers on one Karmada control plane\n")
    with ControlPlane(folder, audit_log=True, say=say) as karmada:
        karmada.add(*real_members(2), *simulated_members(6))
        say("2 real members (with API servers of their own) and 6 simulated ones have joined")
        karmada.start_karmada_scheduler(DEFAULT, leader_elect=True)
        say(f"karmada-scheduler, Karmada's own, is running as {DEFAULT}")
        start_scheduler(karmada, name=MINE)
        say(f"karmada-pyscheduler, this project's, is running as {MINE}")
        karmada.client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for case in CASES:
            for manifest in case.manifests():
                karmada.client.apply(manifest)
        say("3 Deployments with 3 policies are applied")
        try:
            karmada.wait_for(lambda: claims(karmada), "it all", until=_all_hold, timeout=30)
            say("everything is placed, applied in the members and reported ready")
        except WaitTimeoutError:
            say("gave up waiting; this is how far it got")
        print(f"\n{report(karmada)}\n")
        outcome = claims(karmada)
        _conclude(karmada, outcome)
        if keep:
            _keep(karmada)
    return 0 if _all_hold(outcome) else 1


def _all_hold(found: Sequence[Claim]) -> bool:
    return all(claim.holds for claim in found)


def _conclude(karmada: ControlPlane, outcome: Sequence[Claim]) -> None:
    wrong = [claim for claim in outcome if not claim.holds]
    if wrong:
        print(f"{len(wrong)} of {len(outcome)} checks failed:\n")
        rows = [(claim.what, claim.expected, claim.found) for claim in wrong]
        print(table(("CHECK", "EXPECTED", "FOUND"), rows))
        print(f"\nThe logs are in {karmada.folder / 'logs'}.")
        return
    print(f"All {len(outcome)} checks hold: each scheduler placed its own bindings and touched no other.\n")
    print(
        "Next: `make demo ARGS=--keep` leaves it running for kubectl; `make controlplane` gives an empty one;\n"
        f"the scheduler's log of this run is {karmada.folder / 'logs' / MINE}.log."
    )


def _keep(karmada: ControlPlane) -> None:
    kubectl = karmada.binaries.path("kubectl")
    print(
        f"\nIt stays until Ctrl-C. In another terminal:\n\n  export KUBECONFIG={karmada.kubeconfig}\n"
        f"  {kubectl} -n {NAMESPACE} get resourcebindings\n"
        f"  {kubectl} -n {NAMESPACE} scale deployment web-my --replicas=30\n"
        f"  {kubectl} --kubeconfig={karmada.members['real1'].kubeconfig} -n {NAMESPACE} get deployments\n",
        flush=True,
    )
    while True:
        karmada.check()
        time.sleep(0.5)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.controlplane.demo", description=textwrap.dedent(__doc__ or "")
    )
    parser.add_argument(
        "--folder", type=Path, default=WORKSPACES / "demo", help="where its files go (default: %(default)s)"
    )
    parser.add_argument("--keep", action="store_true", help="leave it running until Ctrl-C")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        binaries.ensure(quiet=True)
        with workspace(options.folder.resolve()) as folder:
            return run(folder, keep=options.keep)
    except KeyboardInterrupt:
        print("\nStopped; nothing is left running.")
        return 0 if options.keep else 130
    except (binaries.BuildError, ProcessDiedError, WaitTimeoutError, WorkspaceError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
