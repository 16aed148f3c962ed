"""A real Karmada control plane as local processes: no containers, no DNS, no root.

    with ControlPlane(folder) as karmada:
        karmada.add(RealMember("real1"), SimulatedMember("sim1", region="ra"))
        karmada.start_karmada_scheduler()
        karmada.client.apply({...})

It owns every process it starts, and all files are under its folder. Functions that wait
look at the processes while they wait, so a program that died is reported at once, with
the end of its log, and not as a timeout.
"""

from __future__ import annotations

import datetime as dt
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from . import audit, binaries, estimators, karmada, simulated
from .api import Object
from .installation import Installation
from .members import Member, RealMember
from .parallel import in_parallel
from .processes import Process, Start, Supervisor, free_port
from .simulated import Agents, SimulatedMember
from .versions import CURRENT, KarmadaVersion
from .waiting import wait_for

T = TypeVar("T")


class ControlPlane:
    """One control plane, running while its `with` block runs.

    Attributes:
        folder: Everything on disk; logs are in logs/.
        client: The harness' client, as an administrator.
        kubeconfig: An administrator's kubeconfig.
        members: The real members by name.
        version: Of Karmada.
    """

    def __init__(
        self,
        folder: Path,
        *,
        version: KarmadaVersion = CURRENT,
        feature_gates: Mapping[str, bool] | None = None,
        extra_flags: Mapping[str, Sequence[str]] | None = None,
        garbage_collection: bool = True,
        audit_log: bool = False,
        start: Start = subprocess.Popen,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepare a control plane; entering the `with` block starts it.

        Args:
            folder: Where to put everything; must be empty or not exist yet.
            version: Of Karmada; etcd and Kubernetes are the same for all.
            feature_gates: In addition to (or instead of) karmada.DEFAULT_FEATURE_GATES; for controller-manager,
                webhook and karmada-scheduler.
            extra_flags: Program name (see binaries.NAMES) to flags that come last and so win.
            garbage_collection: Whether kube-controller-manager runs. Without it, there is no kubectl and no
                estimator either (see binaries.needed), and what belongs to a deleted object stays.
            audit_log: Whether every request goes to logs/audit.log.
            start: Starts its programs.
            say: Called with one line per step.

        Raises:
            ValueError: The version does not know one of the feature gates.
        """
        if unknown := version.unknown_gates.intersection(feature_gates or {}):
            raise ValueError(f"Karmada {version.name} has no feature gate {', '.join(sorted(unknown))}")
        self.version = version
        self.folder = folder.resolve()
        self.feature_gates = {**karmada.DEFAULT_FEATURE_GATES, **(feature_gates or {})}
        self.members: dict[str, Member] = {}
        self.simulated: dict[str, SimulatedMember] = {}
        self.audit_log = self.folder / "logs" / "audit.log" if audit_log else None
        self._extra_flags = extra_flags or {}
        self._garbage_collection = garbage_collection
        self._start = start
        self._say = say

    def __enter__(self) -> Self:
        """Start everything up to and including the controller managers; no scheduler yet."""
        if self.folder.exists() and any(self.folder.iterdir()):
            raise FileExistsError(f"{self.folder} is not empty; a control plane needs an empty folder")
        names = binaries.needed(garbage_collection=self._garbage_collection)
        self.binaries = binaries.ensure(self.version, names=names, quiet=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._supervisor = Supervisor(self.folder / "logs", start=self._start)
        try:
            self._karmada = Installation(
                self.folder,
                programs=self.binaries,
                supervisor=self._supervisor,
                feature_gates=self.feature_gates,
                extra_flags=self._extra_flags,
                garbage_collection=self._garbage_collection,
                audit_log=self.audit_log,
            )
            self.client, self.kubeconfig = self._karmada.client, self._karmada.front.kubeconfig
            self._agents = Agents(self.client)
            self._karmada.start(self._say)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every process."""
        self.stop()

    def stop(self) -> None:
        """End every process: clients first by SIGTERM, then API servers and etcd by SIGKILL."""
        servers = {"etcd", "karmada", *self.members}
        if hasattr(self, "_agents"):
            self._agents.stop()
        for member in self.members.values():
            member.stop_loops()
        clients = [process for process in self._supervisor.processes if process.name not in servers]
        in_parallel(lambda process: process.stop(timeout=5), clients)
        self._supervisor.close()
        if hasattr(self, "_agents"):
            self._agents.close()
            self.client.close()
        for member in self.members.values():
            member.close()

    def check(self) -> None:
        """Raise processes.ProcessDiedError if any program ended unexpectedly."""
        self._supervisor.check()

    def wait_for(
        self,
        probe: Callable[[], T],
        what: str,
        *,
        timeout: float = 60.0,
        until: Callable[[T], object] = bool,
    ) -> T:
        """Wait as waiting.wait_for does, and fail at once when a program dies."""
        return wait_for(probe, what, timeout=timeout, until=until, check=self.check)

    @property
    def processes(self) -> tuple[Process, ...]:
        """Every program running, oldest first."""
        return self._supervisor.processes

    def spawn(self, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None) -> Process:
        """Start a further program with a log file, detection of its end, and the lifetime of the control plane."""
        return self._supervisor.spawn(name, argv, env)

    def forget(self, process: Process) -> None:
        """Drop a program that has ended from the list, so that its name is free again."""
        self._supervisor.forget(process)

    # -- members --------------------------------------------------------------------------------

    def add(self, *members: RealMember | SimulatedMember, agents: bool = True) -> None:
        """Start and join members, all at once, and wait until Karmada reports them as ready.

        Args:
            members: What to add.
            agents: Whether the harness runs the agents of the simulated ones; without, their Works
                stay unanswered, which is cheaper.
        """
        real = [Member(spec, self._karmada.site) for spec in members if isinstance(spec, RealMember)]
        unreal = [spec for spec in members if isinstance(spec, SimulatedMember)]
        self.members |= {member.name: member for member in real}
        in_parallel(lambda member: member.start(self.check), real)
        if unreal:
            simulated.register(self.client, unreal, self.check)
            self.simulated |= {spec.name: spec for spec in unreal}
            if agents:
                self._agents.serve(unreal)
        in_parallel(lambda member: member.join(self.client, self.check), real)

    def remove(self, name: str) -> None:
        """Let Karmada delete a real member with its Works, wait until it has, and end the member's programs."""
        self.client.delete(f"{karmada.CLUSTERS}/{name}")
        self.wait_for(
            lambda: self.client.find(f"{karmada.CLUSTERS}/{name}") is None, f"{name} to be gone", timeout=90
        )
        self.members[name].stop_loops()
        self.members[name].stop_programs()
        self.members.pop(name).close()

    def add_simulated_member(self, name: str, **fields: Any) -> SimulatedMember:
        """Add one simulated member; the fields are those of SimulatedMember."""
        self.add(SimulatedMember(name, **fields))
        return self.simulated[name]

    # -- identities -----------------------------------------------------------------------------

    def kubeconfig_for(self, common_name: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig with a client certificate for a user; what it may do is up to RBAC."""
        return self._karmada.kubeconfig_for(common_name, groups)

    def kubeconfig_with_rules(self, user: str, rules: Sequence[Object]) -> Path:
        """Write a kubeconfig for a user who may do what these rules of a ClusterRole allow and nothing else."""
        group = "rbac.authorization.k8s.io"
        role: Object = {"apiVersion": f"{group}/v1", "metadata": {"name": user}}
        reference = {"apiGroup": group, "kind": "ClusterRole", "name": user}
        subjects = [{"apiGroup": group, "kind": "User", "name": user}]
        self.client.apply({**role, "kind": "ClusterRole", "rules": rules})
        self.client.apply({**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects})
        return self.kubeconfig_for(user)

    def kubeconfig_of_reader(self, user: str, resources: Iterable[tuple[str, Sequence[str]]]) -> Path:
        """Write a kubeconfig for a user who may get and list the resources of API groups and nothing else."""
        return self.kubeconfig_with_rules(
            user,
            [
                {"apiGroups": [group], "resources": list(names), "verbs": ["get", "list"]}
                for group, names in resources
            ],
        )

    def kubeconfig_for_scheduler(self, user: str, *, lease: str | None = None) -> Path:
        """Write a kubeconfig for a user who may do what a scheduler needs and nothing else.

        Args:
            user: The certificate's common name.
            lease: The Lease it may hold; by default named as the user.
        """
        for manifest in karmada.scheduler_roles(user, lease=lease or user):
            self.client.apply(manifest)
        return self.kubeconfig_for(user)

    def write_kubeconfig(
        self, path: Path, user: str, *, server: str, valid_for: dt.timedelta = dt.timedelta(days=1)
    ) -> None:
        """Write a kubeconfig for a user at another address of the API server, or replace it by one rename."""
        credentials = self._karmada.authority.issue(user, valid_for=valid_for)
        new = path.with_name(path.name + ".new")
        self._karmada.authority.kubeconfig(new, server=server, user=credentials)
        new.replace(path)

    @property
    def etcd(self) -> str:
        """The URL of etcd."""
        return self._karmada.site.etcd

    # -- schedulers and estimators --------------------------------------------------------------

    def start_karmada_scheduler(
        self,
        name: str = "default-scheduler",
        *flags: str,
        kubeconfig: Path | None = None,
        leader_elect: bool = False,
        with_estimators: bool = False,
    ) -> Process:
        """Start upstream's karmada-scheduler and wait until it is healthy.

        Args:
            name: Its --scheduler-name.
            flags: Further flags; they win.
            kubeconfig: By default its usual identity, a member of system:masters.
            leader_elect: Whether it takes the Lease `karmada-scheduler` first. Its Lease is not given
                back at the end, so the next one waits 15 s.
            with_estimators: Whether it uses the estimators of real members.
        """
        health_port = free_port()
        process = self._karmada.run(
            f"karmada-scheduler-{name}",
            "scheduler",
            [
                *karmada.scheduler_flags(
                    kubeconfig=kubeconfig or self._karmada.system_kubeconfig("karmada-scheduler"),
                    name=name,
                    metrics_port=free_port(),
                    health_port=health_port,
                ),
                f"--leader-elect={str(leader_elect).lower()}",
                *karmada.gates_flag(self.feature_gates),
                *(self.estimator_client_flags() if with_estimators else ()),
                *flags,
            ],
        )
        self._karmada.wait_http(f"http://127.0.0.1:{health_port}/healthz", process.name)
        return process

    def start_estimator(self, member: str, *flags: str, kubeconfig: Path | None = None) -> Process:
        """Start karmada-scheduler-estimator for a member, with the Service schedulers find it by.

        Args:
            member: The cluster's name.
            flags: Further flags; they win.
            kubeconfig: Of the API server whose nodes it counts; by default that of the real member.
        """
        return estimators.start(
            self._karmada,
            member,
            flags,
            kubeconfig=kubeconfig or self.members[member].kubeconfig,
            check=self.check,
        )

    def start_descheduler(self, seconds: int) -> Process:
        """Start karmada-descheduler, which takes replicas that have waited for so many seconds, as often."""
        binaries.ensure(self.version, names=["descheduler"], quiet=True)
        return estimators.start_descheduler(self._karmada, seconds)

    def start_aside(self, spec: RealMember) -> Member:
        """Start the API server of a member with its nodes, and do not join it.

        A simulated member of the same name has somewhere for its estimator to count, then.
        """
        member = Member(spec, self._karmada.site)
        self.members[spec.name] = member
        member.start(self.check)
        return member

    def estimator_client_flags(self) -> list[str]:
        """Return the flags with which a scheduler finds and trusts the estimators."""
        return estimators.client_flags(self._karmada)

    # -- the API server -------------------------------------------------------------------------

    def requests(self, user: str = "") -> list[Object]:
        """Return the events of the audit log so far, those of one user if named."""
        assert self.audit_log is not None, "started without audit_log=True"
        return audit.requests(self.audit_log, user=user)

    def compact_etcd(self) -> None:
        """Compact the history: a watch from an older resourceVersion gets 410 Gone."""
        self._karmada.compact_etcd()

    def backup_etcd(self) -> Path:
        """Copy etcd's files, for which it is away for a moment; return where they are."""
        return self._karmada.backup_etcd()

    def restore_etcd(self, backup: Path) -> None:
        """Restore a backup, resourceVersions included; restarts kube-apiserver and nothing else."""
        self._karmada.restore_etcd(backup)

    def kill_apiserver(self) -> None:
        """End kube-apiserver, as a crash would. restart_apiserver() brings it back."""
        self._karmada.front.kill()

    def restart_apiserver(self) -> None:
        """End kube-apiserver if it runs, start it again at the same address, and wait until it serves clusters."""
        self._karmada.restart_apiserver()

    def kubectl(self, *arguments: str, kubeconfig: Path | None = None, stdin: str | None = None) -> str:
        """Run kubectl and return what it prints; an error becomes an exception."""
        command = [
            str(self.binaries.path("kubectl")),
            f"--kubeconfig={kubeconfig or self.kubeconfig}",
            *arguments,
        ]
        answer = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise RuntimeError(
                f"kubectl {' '.join(arguments)}: status {answer.returncode}: {answer.stderr.strip()}"
            )
        return answer.stdout
