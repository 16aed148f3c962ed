"""``test --init``: a first file of placement tests from a control plane."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final

from karmada_advisor.cli import test
from karmada_advisor.cli.output import GOOD, print_errors
from karmada_advisor.cli.questions import control_plane_of, source_of
from karmada_advisor.explain.amounts import counted
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.fleet import reference_of
from karmada_advisor.fleet.named_binding import selector_of
from karmada_advisor.fleet.read import read_fleet, workload_reader
from karmada_advisor.views.fields import as_yaml
from karmada_advisor.views.text import printable
from karmada_advisor.whatif.placement_tests.init import WrittenTests, write_tests
from karmada_advisor.whatif.plan.objects import UnversionedTemplateKey
from karmada_scheduler.framework.profile.factory import Registration

_SHOWN: Final = 3


def run_init(arguments: argparse.Namespace, own: Sequence[Registration]) -> int:
    """Write tests, run them, and print what they are; return the exit status of their run."""
    with redirect_stdout(sys.stderr):
        written = _written(arguments)
        given = argparse.Namespace(**{**vars(arguments), "paths": [str(written.folder)], "run": []})
        report = test.report_of(given, own)
    status = test.status_of(report, every_policy=False)
    end = "All pass." if status == GOOD else f"{report.failed} fail; run test {written.folder}."
    sys.stdout.write(_text(written, end))
    return status


def _text(written: WrittenTests, end: str) -> str:
    parts = [counted(written.clusters, "cluster"), counted(written.workloads, "workload")]
    lines = [f"wrote {', '.join(parts)}, {counted(written.cases, 'case')} to {written.folder}. {end}"]
    if written.unclaimed:
        lines.append(f"{counted(written.unclaimed, 'workload')} without a policy of the files, in no case.")
    if written.elsewhere:
        names = ", ".join(written.elsewhere[:_SHOWN])
        more = f" and {len(written.elsewhere) - _SHOWN} more" if len(written.elsewhere) > _SHOWN else ""
        lines.append(
            f"{counted(len(written.elsewhere), 'workload')} placed otherwise now, as a first decision has no history: "
            f"{names}{more}. `plan` compares with the placements of today."
        )
    return "".join(f"{printable(line)}\n" for line in lines)


def _written(arguments: argparse.Namespace) -> WrittenTests:
    policies = arguments.policies
    if not policies:
        raise NoAnswerError("--init: name the files of policies (--policies)")
    missing = [path for path in policies if not Path(path).exists()]
    if missing:
        raise NoAnswerError(f"--policies: {missing[0]} does not exist ({Path(missing[0]).absolute()})")
    selects = selector_of(arguments.selector)
    # The policies are those of the files; those of the control plane are not needed.
    asked = argparse.Namespace(**{**vars(arguments), "policies": [], "namespace": "", "process": ""})
    objects = read_fleet(source_of(asked), all_bindings=True)
    print_errors((*objects.problems, *objects.warnings))
    objects.bindings = [
        binding
        for binding in objects.bindings
        if binding.spec.placement is not None
        and (not arguments.namespace or binding.key.namespace == arguments.namespace)
        and selects(binding.labels)
    ]
    if (read := workload_reader(control_plane_of(arguments), objects)) is not None:
        workloads, problem = read()
        objects.workloads = list(workloads)
        print_errors(filter(None, [problem]))
    return write_tests(
        arguments.init,
        [objects.manifests[cluster.name] for cluster in objects.clusters],
        [objects.manifests[binding.key] for binding in objects.bindings],
        policies,
        {UnversionedTemplateKey(*reference_of(each)): each.labels for each in objects.workloads or ()},
        as_yaml=as_yaml,
    )
