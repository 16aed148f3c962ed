"""``--scheduler-manifest``: the rules are those of the Deployment of the running scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import run

FLEET = Path(__file__).parents[3] / "docs" / "examples" / "fleet"
FILES = (f"--clusters={FLEET / 'clusters.yaml'}", f"--bindings={FLEET / 'bindings.yaml'}")
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: karmada-scheduler, namespace: karmada-system}}
spec:
  template:
    spec:
      containers:
      - name: sidecar
        image: example.com/sidecar:1
      - name: karmada-scheduler
        image: docker.io/karmada/karmada-scheduler:{version}
        command: [/bin/karmada-scheduler, --kubeconfig=/etc/config, "--metrics-bind-address=$(POD_IP):8080", --v=4{flags}]
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return tmp_path / "scheduler.yaml"


def write(path: Path, flags: str = "", version: str = "v1.18.2") -> None:
    """Write the Deployment of a scheduler with further flags."""
    path.write_text(DEPLOYMENT.format(flags=flags, version=version))


def test_the_rules_are_those_of_the_manifest(manifest: Path) -> None:
    write(manifest, ', "--feature-gates=PriorityBasedScheduling=true", "--plugins=*,-ClusterLocality"')
    found = run(
        "explain", "shop/checkout-deployment", *FILES, f"--scheduler-manifest={manifest}", "--width=300"
    )
    assert (found.status, found.err) == (0, '"ClusterLocality" is disabled\n')
    assert "--plugins=*,-ClusterLocality --feature-gates=PriorityBasedScheduling=true" in found.out


def test_the_flags_of_the_command_come_after_those_of_the_manifest(manifest: Path) -> None:
    write(manifest, ', "--feature-gates=PriorityBasedScheduling=true,Failover=true"')
    flags = (f"--scheduler-manifest={manifest}", "--feature-gates=Failover=false", "--width=300")
    found = run("explain", "shop/checkout-deployment", *FILES, *flags)
    assert "--feature-gates=PriorityBasedScheduling=true" in found.out
    assert "Failover" not in found.out


def test_a_container_without_a_command_is_known_by_its_image_from_a_registry_with_a_port(
    manifest: Path,
) -> None:
    write(manifest, version="v1.19.1@sha256:0123")
    text = manifest.read_text().replace("docker.io/karmada/", "registry.local:5000/")
    manifest.write_text(text.replace("command: [/bin/karmada-scheduler, ", "args: ["))
    explained = run(
        "explain", "shop/checkout-deployment", *FILES, f"--scheduler-manifest={manifest}", "--width=300"
    )
    assert "--decisions-of=1.19" in explained.out


def test_the_bindings_of_other_schedulers_are_not_decided(manifest: Path) -> None:
    write(manifest, ", --scheduler-name=my-scheduler")
    found = run("simulate", *FILES, f"--scheduler-manifest={manifest}")
    assert (found.status, found.out.count("OtherScheduler")) == (1, 2)


def test_in_a_plan_it_is_the_scheduler_as_it_is(manifest: Path) -> None:
    write(manifest, ', "--feature-gates=SchedulingOvercommitProtection=true"')
    flags = (f"--scheduler-manifest={manifest}", "--feature-gates=SchedulingOvercommitProtection=false")
    [change] = run("plan", *FILES, *flags, "-o", "json").fields["changes"]
    assert (change["object"], change["text"]) == ("feature gate SchedulingOvercommitProtection", "on -> off")


@pytest.mark.parametrize("version", ["1.17", "1.19"])
def test_the_image_says_whose_decisions_are_made(manifest: Path, version: str) -> None:
    write(manifest, version=f"v{version}.1")
    explained = run(
        "explain", "shop/checkout-deployment", *FILES, f"--scheduler-manifest={manifest}", "--width=300"
    )
    [*_, change] = run(
        "plan", *FILES, f"--scheduler-manifest={manifest}", "--decisions-of=1.18", "-o", "json"
    ).fields["changes"]

    assert f"--decisions-of={version}" in explained.out
    assert "feature-gates" not in explained.out
    assert (change["object"], change["text"]) == ("--decisions-of", f"{version} -> 1.18")


def test_the_flag_of_our_scheduler_counts_and_not_its_version(manifest: Path) -> None:
    write(manifest, ", --decisions-of=1.17", version="0.1.0")
    manifest.write_text(manifest.read_text().replace("karmada-scheduler:", "karmada-pyscheduler:"))
    found = run(
        "explain", "shop/checkout-deployment", *FILES, f"--scheduler-manifest={manifest}", "--width=300"
    )

    assert (found.status, found.err) == (0, "")
    assert "--decisions-of=1.17" in found.out


@pytest.mark.parametrize(
    ("flags", "version", "note"),
    [
        (", --nonsense=1", "v1.18.2", "--nonsense is not known, and counts as not given"),
        (", --enable-scheduler-estimator=true", "v1.18.2", "asks estimators in member clusters"),
        ("", "v1.16.0", "the image is of 1.16, and the rules here are those of 1.18"),
    ],
)
def test_what_is_not_as_here_is_a_note(manifest: Path, flags: str, version: str, note: str) -> None:
    write(manifest, flags, version)
    found = run("explain", "shop/checkout-deployment", *FILES, f"--scheduler-manifest={manifest}")
    assert found.status == 0
    assert found.err.startswith("note: --scheduler-manifest: ")
    assert note in found.err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: ConfigMap\n", "has no container that runs karmada-scheduler"),
        ("[", "not YAML"),
        (DEPLOYMENT.format(flags=', "--feature-gates=Nope=true"', version="v1.18.2"), "Nope"),
        (DEPLOYMENT.format(flags=", --v=x", version="v1.18.2"), "--v"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_no_answer(manifest: Path, text: str, problem: str) -> None:
    manifest.write_text(text)
    found = run("explain", "shop/checkout-deployment", *FILES, f"--scheduler-manifest={manifest}")
    assert found.status == 2
    assert found.err.startswith("Error: --scheduler-manifest: ")
    assert problem in found.err


def test_a_manifest_that_does_not_exist_is_no_answer(manifest: Path) -> None:
    found = run("explain", "shop/checkout-deployment", *FILES, f"--scheduler-manifest={manifest}")
    assert (found.status, "cannot be read" in found.err) == (2, True)
