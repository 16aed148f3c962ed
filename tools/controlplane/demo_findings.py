"""The findings of the demo on the API servers, and its claims about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .api import Object
from .controlplane import ControlPlane
from .demo_objects import CASES, DEFAULT, MINE, NAMESPACE, Case

BINDINGS = f"/apis/work.karmada.io/v1alpha2/namespaces/{NAMESPACE}/resourcebindings"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases"


@dataclass(frozen=True, slots=True)
class Claim:
    """An expected and a found value."""

    what: str
    expected: object
    found: object

    @property
    def holds(self) -> bool:
        """Whether found equals expected."""
        return self.expected == self.found


@dataclass(frozen=True, slots=True)
class Write:
    """One accepted patch of a binding."""

    user: str
    placement: bool  # whether it wrote spec.clusters


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of one case on the API servers."""

    case: Case
    binding: Object
    events: Sequence[Object]  # ScheduleBinding* on the binding, oldest first
    template_events: Sequence[Object]  # ScheduleBinding* on the Deployment
    writes: Sequence[Write]  # oldest first
    members: Mapping[str, str]  # member to "ready/replicas"

    @property
    def placed(self) -> dict[str, int]:
        """Clusters to replicas, from the binding's spec.clusters."""
        return {item["name"]: item.get("replicas", 0) for item in self.binding["spec"].get("clusters", [])}

    @property
    def reporters(self) -> list[str]:
        """Components that reported having scheduled it."""
        return _sources(self.events)

    @property
    def placers(self) -> list[str]:
        """API users who wrote its placement."""
        return sorted({write.user for write in self.writes if write.placement})

    @property
    def schedulers(self) -> list[str]:
        """Users of the two schedulers that wrote to the binding."""
        return sorted({write.user for write in self.writes} & {case.user for case in CASES})

    def condition(self, kind: str) -> Object:
        """Return one condition of the binding, empty if it is not there."""
        conditions: list[Object] = self.binding.get("status", {}).get("conditions") or []
        return next((item for item in conditions if item["type"] == kind), {})

    def claims(self) -> Iterator[Claim]:
        """Yield all claims for this case."""
        case, name = self.case, self.case.name
        spec, status = self.binding["spec"], self.binding.get("status", {})
        yield Claim(f"{name}: the binding belongs to", case.belongs_to, spec.get("schedulerName"))
        found = case.expected if case.as_expected(self.placed) else shown(self.placed)
        yield Claim(f"{name}: placement", case.expected, found)
        yield Claim(f"{name}: reported as scheduled by", [case.belongs_to], self.reporters)
        yield Claim(
            f"{name}: reported on the Deployment by", [case.belongs_to], _sources(self.template_events)
        )
        yield Claim(f"{name}: API users who wrote the placement", [case.user], self.placers)
        yield Claim(f"{name}: schedulers that wrote to it", [case.user], self.schedulers)
        yield Claim(f"{name}: Scheduled", ("True", "Success"), brief(self.condition("Scheduled")))
        yield Claim(
            f"{name}: FullyApplied", ("True", "FullyAppliedSuccess"), brief(self.condition("FullyApplied"))
        )
        yield Claim(
            f"{name}: generation the scheduler has seen",
            self.binding["metadata"].get("generation", "(no binding)"),
            status.get("schedulerObservedGeneration"),
        )
        reasons = sorted({event["reason"] for event in self.events})
        yield Claim(f"{name}: kinds of events", ["ScheduleBindingSucceed"], reasons)
        text = self.events[-1]["message"] if self.events else ""
        named = {item.strip() for item in text.rpartition("{")[2].rstrip("}").split(",")}
        yield Claim(f"{name}: the event names", {f"{k}:{v}" for k, v in self.placed.items()}, named)
        running = {member: f"{count}/{count}" for member, count in self.placed.items()}
        yield Claim(f"{name}: ready in members", running, dict(self.members))


def look(karmada: ControlPlane) -> list[Seen]:
    """Read everything the demo reports, from the API servers."""
    events = [event for event in karmada.client.list(EVENTS) if event["reason"].startswith("ScheduleBinding")]
    works = karmada.client.list("/apis/work.karmada.io/v1alpha1/works")
    deployed = {name: member.client.list(DEPLOYMENTS) for name, member in karmada.members.items()}
    seen = []
    for case in CASES:
        name = f"{case.name}-deployment"
        binding = karmada.client.find(f"{BINDINGS}/{name}") or {"metadata": {}, "spec": {}}
        uid = binding["metadata"].get("uid", "no binding")
        seen.append(
            Seen(
                case=case,
                binding=binding,
                events=[event for event in events if event["involvedObject"].get("uid") == uid],
                template_events=[
                    event
                    for event in events
                    if (event["involvedObject"].get("kind"), event["involvedObject"].get("name"))
                    == ("Deployment", case.name)
                ],
                writes=_writes(karmada, name),
                members={**_running(case, deployed), **_pretended(case, works, karmada)},
            )
        )
    return seen


def _sources(events: Sequence[Object]) -> list[str]:
    return sorted({event["source"].get("component", "") for event in events})


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
    writes = []
    for entry in karmada.requests():
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
