"""The demo: karmada-scheduler and this project's scheduler side by side on one real control plane.

It ends with status 0 only if each scheduler placed exactly what was its own, where the
policy wanted it, and the members report it.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from karmada_advisor.views.text import table

from . import binaries, versions
from .controlplane import ControlPlane
from .demo_findings import Claim, brief, claims, look, shown
from .demo_objects import CASES, DEFAULT, MINE, NAMESPACE
from .fleet import real_members, simulated_members
from .ours import environment, start_scheduler, start_web
from .outages import Outages
from .processes import free_port
from .versions import KarmadaVersion
from .waiting import WaitTimeoutError
from .workspace import DEFAULT as WORKSPACES
from .workspace import run_by_hand, timed_lines, workspace


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
                seen.case.policy_scheduler or "(not given)",
                seen.binding["spec"].get("schedulerName", ""),
                ", ".join(seen.reporters) or "none",
                ", ".join(seen.placers) or "none",
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
                "real: read from its API server"
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
            f"What they reported about it\n\n{what}",
            f"The Deployments as the members report them (ready/wanted)\n\n{where}",
        )
    )


def run(folder: Path, version: KarmadaVersion, *, keep: bool) -> int:
    """Run the demo in a folder; returns the exit status.

    One that is kept has garbage collection, because people delete what they look at.
    """
    say = timed_lines()
    print("Two schedulers on one Karmada control plane\n")
    with ControlPlane(folder, version=version, garbage_collection=keep, audit_log=True, say=say) as karmada:
        karmada.add(*real_members(2), *simulated_members(6))
        say("2 real members (with API servers of their own) and 6 simulated ones have joined")
        karmada.start_karmada_scheduler(DEFAULT, leader_elect=True)
        say(f"karmada-scheduler, Karmada's own, is running as {DEFAULT}")
        address = f"127.0.0.1:{free_port()}"
        start_scheduler(karmada, f"--explain-bind-address={address}", name=MINE)
        say(f"karmada-pyscheduler, this project's, is running as {MINE}")
        karmada.client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for case in CASES:
            for manifest in case.manifests():
                karmada.client.apply(manifest)
        say("3 Deployments with 3 policies are applied")
        try:
            karmada.wait_for(lambda: claims(karmada), "it all", until=_all_hold, timeout=60)
            say("everything is placed, applied in the members and reported ready")
        except WaitTimeoutError:
            say("gave up waiting; this is how far it got")
        print(f"\n{report(karmada)}\n")
        outcome = claims(karmada)
        _conclude(karmada, outcome)
        if keep:
            _keep(karmada, f"http://{address}", say)
        _leave(karmada, f"http://{address}")
    return 0 if _all_hold(outcome) else 1


def _all_hold(found: Sequence[Claim]) -> bool:
    return all(claim.holds for claim in found)


def _conclude(karmada: ControlPlane, outcome: Sequence[Claim]) -> None:
    wrong = [claim for claim in outcome if not claim.holds]
    if wrong:
        print(f"{len(wrong)} of {len(outcome)} checks failed:\n")
        rows = [(claim.what, claim.expected, claim.found) for claim in wrong]
        print(table(("CHECK", "EXPECTED", "FOUND"), rows))
    else:
        print(f"All {len(outcome)} checks hold: each scheduler placed its own bindings and touched no other.")
    print(f"The logs are in {karmada.folder / 'logs'}, that of this project's scheduler is {MINE}.log.\n")


def _questions(source: str = "", *, record: str = "") -> list[str]:
    """Return the three commands to try, with flags for what they read; ``record`` is for those that read records."""
    commands = (
        f"explain -n {NAMESPACE} deployment/web-my {source}{record}",
        f"why-not -n {NAMESPACE} deployment/web-my sim-a1 {source}",
        f"plan --without real1 {source}{record}",
    )
    return [f"  karmada-pyscheduler {command}".rstrip() for command in commands]


def _leave(karmada: ControlPlane, records: str) -> None:
    """Capture the objects before everything ends, and print the commands that read them."""
    captured = karmada.folder / "objects.json.gz"
    command = [sys.executable, "-m", "karmada_scheduler", "explain", f"--kubeconfig={karmada.kubeconfig}"]
    command += ["--all-namespaces", f"--from={records}", f"--capture={captured}"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode > 1:
        print(f"The objects could not be captured: {answer.stderr.strip()}")
        return
    lines = [
        "These answer from a copy of its objects, now that it has ended:",
        "",
        f"  export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH",
        *_questions(f"--replay {shlex.quote(str(captured))}"),
        "",
        "Next: `make demo ARGS=--keep` leaves it running, for kubectl and the page; `make controlplane` starts an",
        "empty one.",
    ]
    print("\n".join(lines))


def _keep(karmada: ControlPlane, records: str, say: Callable[[str], None]) -> None:
    """Print the commands that read the control plane, and keep it running until Ctrl-C."""
    _, url = start_web(karmada, f"--from={records}")
    outages = Outages(karmada, say)
    member = shlex.quote(str(karmada.members["real1"].kubeconfig))
    lines = [
        "It stays until Ctrl-C. In another terminal:",
        "",
        f"  {environment(karmada)}",
        *_questions(record=f"--from {records}"),
        "",
        f"  kubectl -n {NAMESPACE} get resourcebindings",
        f"  kubectl -n {NAMESPACE} scale deployment web-my --replicas=30",
        f"  kubectl -n {NAMESPACE} get deployments --kubeconfig={member}",
        "",
        *outages.help_lines(),
        "",
        f"The page:                         {url}",
        f"The scheduler's records (--from): {records}",
        "",
    ]
    print("\n".join(lines), flush=True)
    try:
        outages.watch()
    except KeyboardInterrupt:
        print()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.controlplane.demo", description=textwrap.dedent(__doc__ or "")
    )
    parser.add_argument(
        "--folder", type=Path, default=WORKSPACES / "demo", help="where its files go (default: %(default)s)"
    )
    parser.add_argument("--keep", action="store_true", help="leave it running until Ctrl-C")
    versions.add_flag(parser)
    options = parser.parse_args(arguments)

    def act() -> int:
        binaries.ensure(options.karmada, names=binaries.needed(garbage_collection=options.keep), quiet=True)
        with workspace(options.folder.resolve()) as folder:
            return run(folder, options.karmada, keep=options.keep)

    return run_by_hand(act, interrupted=130)


if __name__ == "__main__":
    sys.exit(main())
