"""CPU time and memory of placement tests on generated fleets: ``make bench-placement-tests``

Each figure is the least of some runs. The exit status is 1 if one is above its bound, which is one and a half times what is wanted.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from karmada_advisor.cli.flags.test import make_parser
from karmada_advisor.cli.test import report_of
from karmada_advisor.placement_tests.model import API_VERSION, KIND
from karmada_scheduler.testing import cluster
from tools import manifests
from tools.bench.files import cost_of
from tools.bench.start import with_compiled_modules
from tools.manifests import DYNAMIC, spread

EXAMPLE: Final = Path(__file__).parents[2] / "docs" / "examples" / "tests"
_TOLERANCE: Final = 1.5
_REGIONS: Final = 10


def main(arguments: list[str] | None = None) -> int:
    """Measure, print a row for each figure, and return 1 if a bound does not hold."""
    parser = argparse.ArgumentParser(
        prog="make bench-placement-tests", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--runs", type=int, default=3, help="of which the least counts (default: %(default)s)"
    )
    runs = parser.parse_args(arguments).runs
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        for name, wanted, unit, measured in _figures(Path(folder), runs):
            bound = wanted * _TOLERANCE
            mark = "" if measured <= bound else "  ABOVE THE BOUND"
            print(
                f"  {name:<44} {measured:8.2f} {unit:<4} wanted {wanted:g}, bound {bound:g}{mark}", flush=True
            )
            is_good = is_good and measured <= bound
    return 0 if is_good else 1


def _figures(folder: Path, runs: int) -> Iterator[tuple[str, float, str, float]]:
    one, hundred = (_written(folder, 8, cases, steps=0) for cases in (1, 101))
    yield "a case without steps, 8 clusters", 5, "ms", 10 * (_run(hundred, runs) - _run(one, runs))
    one, hundred = (_written(folder, 8, cases, steps=2) for cases in (1, 101))
    yield "a case with two steps, 8 clusters", 10, "ms", 10 * (_run(hundred, runs) - _run(one, runs))
    for clusters, wanted in ((100, 0.6), (1_000, 2.5)):
        path = _written(folder, clusters, 100, steps=0)
        yield f"100 cases, {clusters:,} clusters, reading included", wanted, "s", _run(path, runs)
    path = _written(folder, 1_000, 1, steps=0)
    yield "reading 1,000 clusters, and one case", 0.8, "s", _run(path, runs)
    environment = with_compiled_modules(folder / "compiled")
    cost_of("test", str(EXAMPLE), environment=environment)  # compiles
    seconds = _least(runs, lambda: cost_of("test", str(EXAMPLE), environment=environment).cpu)
    yield "docs/examples/tests, the whole command", 0.8, "s", seconds
    path = _written(folder, 1_000, 1_000, steps=0)
    yield "1,000 clusters, 1,000 cases, memory", 200, "MiB", cost_of("test", str(path)).mib


def _written(folder: Path, clusters: int, cases: int, *, steps: int) -> Path:
    """Write a fleet, a policy, a workload and cases; return the test file."""
    root = folder / f"{clusters}-{cases}-{steps}"
    root.mkdir(exist_ok=True)
    fleet = [
        cluster(f"m{number:04d}")
        .region(f"r{number % _REGIONS}")
        .labels(tier="prod")
        .capacity(cpu=400)
        .manifest()
        for number in range(clusters)
    ]
    (root / "fleet.yaml").write_text(_yaml({"apiVersion": "v1", "kind": "List", "items": fleet}))
    placement = manifests.placement(
        DYNAMIC,
        spread("cluster", 2, 6),
        clusterAffinity={"labelSelector": {"matchLabels": {"tier": "prod"}}},
    )
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 24,
            "template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "500m"}}}]}},
        },
    }
    expect = {"shop/web": {"replicas": 24}}
    then = [
        {"scale": {"shop/web": 30 + number}, "expect": {"shop/web": {"placed": True}}}
        for number in range(steps)
    ]
    content = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "fleet": {"files": ["fleet.yaml"]},
        "policies": ["policy.yaml"],
        "workloads": [workload],
        "cases": [
            {"name": f"case {number}", "expect": expect, **({"then": then} if then else {})}
            for number in range(cases)
        ],
    }
    (root / "policy.yaml").write_text(_yaml(manifests.policy("shop", "web", placement)))
    path = root / "web_test.yaml"
    path.write_text(_yaml(content))
    return path


def _yaml(value: Any) -> str:
    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, _data: object) -> bool:
            return True

    text: str = yaml.dump(value, Dumper=Dumper, sort_keys=False)
    return text


def _run(path: Path, runs: int) -> float:
    """Return the CPU seconds of a run within this process."""

    def seconds() -> float:
        begun = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            report = report_of(make_parser().parse_args([str(path)]))
        assert not report.failed, report
        assert not report.not_run, report
        return time.process_time() - begun

    return _least(runs, seconds)


def _least(runs: int, measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(runs))


if __name__ == "__main__":
    sys.exit(main())
