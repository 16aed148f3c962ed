"""A small repository of policies and tests, in files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent, indent

from tests.commands import Ran, run

HEAD = """\
apiVersion: test.pyscheduler.karmada.io/v1alpha1
kind: PlacementTest
"""
FLEET = """\
fleet:
  clusters:
    a: {region: r1, labels: {tier: prod}}
    b: {region: r2, labels: {tier: prod}}
    c: {region: r2, labels: {tier: test}}
"""
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, name: web}
  placement:
    clusterAffinity: {labelSelector: {matchLabels: {tier: prod}}}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
"""
WORKLOADS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 4
  template: {spec: {containers: [{name: web, resources: {requests: {cpu: 500m}}}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
"""
USES = """\
policies: [policy.yaml]
workloads: [workloads.yaml]
"""
BEGIN = HEAD + FLEET + USES


def case(expect: str = "", *, then: str = "", given: str = "", name: str = "one") -> str:
    """Return a case with these parts, each as YAML."""
    found = f"- name: {name}\n"
    for key, text in (("given", given), ("expect", expect), ("then", then)):
        if text:
            found += f"  {key}:\n{indent(dedent(text).strip(), '    ')}\n"
    return found


def with_cases(*cases: str, begin: str = BEGIN) -> str:
    """Return a file with cases."""
    return f"{begin}cases:\n{''.join(cases)}"


def written(folder: Path, text: str, files: Mapping[str, str] | None = None) -> Path:
    """Write a test file, a policy and workloads; return the test file."""
    for name, content in {"policy.yaml": POLICY, "workloads.yaml": WORKLOADS, **(files or {})}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    path = folder / "web_test.yaml"
    path.write_text(text)
    return path


def ran(folder: Path, text: str, *flags: str, files: Mapping[str, str] | None = None) -> Ran:
    """Run a test file."""
    return run("test", str(written(folder, text, files)), *flags)


def ran_case(folder: Path, expect: str = "", *, then: str = "", given: str = "", begin: str = BEGIN) -> Ran:
    """Run a file with one case."""
    return ran(folder, with_cases(case(expect, then=then, given=given), begin=begin))
