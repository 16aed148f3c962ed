"""Starting the scheduler of this repository on a control plane."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import requests
import yaml

from . import karmada
from .api import local_session
from .controlplane import ControlPlane
from .processes import Process, free_port


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A running scheduler of ours.

    Attributes:
        process: Stop it, kill it, read its log.
        metrics: URL of its metrics server.
        health: URL of its health server.
    """

    process: Process
    metrics: str
    health: str

    @property
    def log(self) -> str:
        """Everything it has logged so far."""
        return self.process.log.read_text(errors="replace")

    def answers(self, path: str) -> int:
        """Return the HTTP status of a path of its health server."""
        return self._get(self.health + path).status_code

    def scrape(self) -> str:
        """Return its metrics in the text format."""
        return self._get(self.metrics + "/metrics").text

    def _get(self, url: str) -> requests.Response:
        with local_session() as session:
            return session.get(url, timeout=5)


def start_scheduler(
    plane: ControlPlane,
    *flags: str,
    name: str = "my-scheduler",
    lease: str | None = None,
    process_name: str | None = None,
    kubeconfig: Path | None = None,
    env: Mapping[str, str] | None = None,
    wait_ready: bool = True,
    program: Sequence[str] = (sys.executable, "-m", "karmada_scheduler"),
    started: Callable[[Scheduler], object] = lambda _: None,
) -> Scheduler:
    """Start it with an identity that may do what a scheduler needs and nothing else, and wait until it is ready.

    Args:
        plane: The control plane it is to serve.
        flags: Further flags; they win.
        name: Its --scheduler-name and its user's name.
        lease: Its Lease; by default named as itself.
        process_name: Name of the process and its log; needed for a second replica.
        kubeconfig: Another identity.
        env: Environment variables in addition to those of the harness.
        wait_ready: Whether to wait for /readyz.
        program: The command without its flags.
        started: Called as soon as it runs, so that its end and its log are cared for even if it
            never becomes ready.
    """
    metrics_port, health_port = free_port(), free_port()
    process = plane.spawn(
        process_name or name,
        [
            *program,
            *karmada.scheduler_flags(
                kubeconfig=kubeconfig or plane.kubeconfig_for_scheduler(name, lease=lease),
                name=name,
                metrics_port=metrics_port,
                health_port=health_port,
            ),
            f"--leader-elect-resource-name={lease or name}",
            *flags,
        ],
        env=env,
    )
    scheduler = Scheduler(process, f"http://127.0.0.1:{metrics_port}", f"http://127.0.0.1:{health_port}")
    started(scheduler)
    if wait_ready:
        plane.wait_for(
            lambda: scheduler.answers("/readyz"),
            f"{process.name} to be ready (see {process.log})",
            until=lambda status: status == 200,
            timeout=30,
        )
    return scheduler


def environment(plane: ControlPlane) -> str:
    """Return the shell command after which kubectl and karmada-pyscheduler use a control plane."""
    kubeconfig, ours, kubectl = (
        shlex.quote(str(path))
        for path in (plane.kubeconfig, Path(sys.executable).parent, plane.binaries.folder)
    )
    return f"export KUBECONFIG={kubeconfig} PATH={ours}:$PATH:{kubectl}"


_FILES: Final = Path(__file__).parents[2] / "charts" / "karmada-pyscheduler" / "files"
WEB_RULES: Final = (_FILES / "web-rules.yaml", _FILES / "web-template-rules.yaml")
WEB_AUTH_RULES: Final = (_FILES / "reviews-rules.yaml", _FILES / "web-hint-rules.yaml")


def start_web(
    plane: ControlPlane,
    *flags: str,
    name: str = "web",
    authority: Path | None = None,
    probes: str = "",
    kubeconfig: Path | None = None,
) -> tuple[Process, str]:
    """Start the page with an identity that may read and nothing else; return the process and the URL.

    Args:
        plane: The control plane to show.
        flags: Further flags.
        name: Of the process and its user.
        authority: The certificate authority of the page, which then may ask about tokens; None for HTTP.
        probes: An address of their own for probes; "" for that of the page.
        kubeconfig: Another identity.
    """
    user = f"system:karmada:{name}"
    files = [*WEB_RULES, *(WEB_AUTH_RULES if authority is not None else ())]
    rules = [rule for file in files for rule in yaml.safe_load(file.read_text())]
    kubeconfig = kubeconfig or plane.kubeconfig_with_rules(user, rules)
    address = f"127.0.0.1:{free_port()}"
    process = plane.spawn(
        name,
        [
            sys.executable,
            "-m",
            "karmada_scheduler",
            "web",
            f"--kubeconfig={kubeconfig}",
            f"--bind-address={address}",
            *([f"--health-probe-bind-address={probes}"] if probes else []),
            *flags,
        ],
    )
    url = f"{'http' if authority is None else 'https'}://{address}/"
    plane.wait_for(
        lambda: _status(f"http://{probes}/readyz" if probes else f"{url}readyz", authority),
        f"the page on {url}",
        until=lambda found: found == 200,
        timeout=120,
    )
    return process, url


def _status(url: str, authority: Path | None) -> int:
    with local_session() as session:
        return session.get(url, timeout=10, verify=True if authority is None else str(authority)).status_code
