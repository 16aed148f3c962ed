"""The command line: build the programs, or keep a control plane running for people."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from . import binaries, kubelets, versions
from .controlplane import ControlPlane
from .fleet import real_members, simulated_members
from .ours import environment
from .outages import Outages
from .workspace import DEFAULT, run_by_hand, timed_lines, workspace


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    return run_by_hand(partial(_run, options), interrupted=0)


def _run(options: argparse.Namespace) -> int:
    if options.command == "binaries":
        binaries.ensure(options.karmada)
        kubelets.ensure()
    else:
        _up(options)
    return 0


def _up(options: argparse.Namespace) -> None:
    binaries.ensure(options.karmada, quiet=True)
    say = timed_lines()
    with (
        workspace(options.folder.resolve()) as folder,
        ControlPlane(
            folder,
            version=options.karmada,
            feature_gates=options.feature_gates,
            audit_log=options.audit_log,
            say=say,
        ) as karmada,
    ):
        real = [replace(member, runs_pods=options.pods) for member in real_members(options.real)]
        karmada.add(*real, *simulated_members(options.simulated))
        say(f"{options.real} real and {options.simulated} simulated members are joined")
        if options.estimators:
            for name in karmada.members:
                karmada.start_estimator(name)
            say("one estimator per real member is running")
        if options.scheduler:
            karmada.start_karmada_scheduler(leader_elect=False, with_estimators=options.estimators)
            say("karmada-scheduler is running as default-scheduler")
        outages = Outages(karmada, say)
        print(_help_text(karmada, outages), flush=True)
        outages.watch()


def _help_text(karmada: ControlPlane, outages: Outages) -> str:
    lines = [
        "",
        f"kubeconfig   {karmada.kubeconfig}",
        *(f"  {name:<10} {member.kubeconfig}" for name, member in karmada.members.items()),
        f"logs         {karmada.folder / 'logs'}",
        "",
        "Try, in another terminal:",
        f"  {environment(karmada)}",
        "  kubectl get clusters -o wide",
        "  karmada-pyscheduler web",
        "",
        *outages.help_lines(),
        "",
        "Ctrl-C ends it all.",
    ]
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.controlplane",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=textwrap.dedent("""\
            A real Karmada control plane as local processes: etcd, kube-apiserver, Karmada's API server,
            webhooks and controllers, member clusters. No containers, no root. See docs/control-plane.md."""),
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    build = commands.add_parser("binaries", help="build the programs if this machine does not have them yet")
    up = commands.add_parser("up", help="start a control plane and keep it until Ctrl-C")
    for each in (build, up):
        versions.add_flag(each)
    default = DEFAULT / "up"
    up.add_argument("--folder", type=Path, default=default, help="where its files go (default: %(default)s)")
    up.add_argument(
        "--real",
        type=int,
        default=2,
        metavar="N",
        help="members with an API server of their own (default: 2)",
    )
    up.add_argument(
        "--pods", action="store_true", help="real members run Pods, with a kube-scheduler of their own"
    )
    up.add_argument(
        "--simulated", type=int, default=6, metavar="N", help="members that exist on paper (default: 6)"
    )
    up.add_argument(
        "--no-scheduler", dest="scheduler", action="store_false", help="start no karmada-scheduler"
    )
    up.add_argument(
        "--estimators", action="store_true", help="one karmada-scheduler-estimator per real member"
    )
    up.add_argument("--audit-log", action="store_true", help="write every request to logs/audit.log")
    up.add_argument(
        "--feature-gates",
        type=_feature_gates,
        default={},
        metavar="A=true,B=false",
        help="for Karmada's controllers, webhook and scheduler",
    )
    return parser


def _feature_gates(text: str) -> dict[str, bool]:
    gates = {}
    for item in filter(None, text.split(",")):
        name, _, value = item.partition("=")
        if value not in {"true", "false"}:
            raise argparse.ArgumentTypeError(f"{item!r} is not of the form Name=true or Name=false")
        gates[name] = value == "true"
    return gates


if __name__ == "__main__":
    sys.exit(main())
