"""``karmada-pyscheduler web`` as a process, over files."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import requests

from karmada_scheduler.testing import BindingBuilder, ClusterBuilder
from tests import fork_server
from tests.fake_apiserver import wait_for
from tests.unit.explain.fleet import billing, checkout, fleet
from tools.controlplane.processes import free_port

_MAIN = "import sys; from karmada_scheduler.__main__ import main; main()"


class PageProcess:
    """A running page.

    Attributes:
        clusters: The file with the clusters.
        bindings: The file with the bindings.
        port: Where it listens.
        log_path: Everything that it wrote.
    """

    def __init__(
        self,
        folder: Path,
        *flags: str,
        first: str = "",
        clusters: Sequence[ClusterBuilder] = (),
        bindings: Sequence[BindingBuilder] = (),
    ) -> None:
        """Start it over a fleet.

        Args:
            folder: Where its files are.
            flags: Further flags.
            first: Python that runs in a new interpreter before anything is imported.
            clusters: The clusters, instead of those of ``tests.unit.explain.fleet``.
            bindings: The bindings, instead of those.
        """
        self.clusters, self.bindings = folder / "clusters.json", folder / "bindings.json"
        self._fleet = clusters or fleet(), bindings or [checkout(), billing()]
        self.write()
        self.port = free_port()
        self.log_path = folder / "page.log"
        command = [
            "web", f"--bind-address=127.0.0.1:{self.port}", "--refresh=1s",
            f"--clusters={self.clusters}", f"--bindings={self.bindings}", *flags,
        ]  # fmt: skip
        with self.log_path.open("wb") as output:
            program = ["-c", f"{first}\n{_MAIN}"] if first else ["-m", fork_server.MODULE]
            self.popen = fork_server.start(
                [sys.executable, *program, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(os.environ),
            )

    def write(self) -> None:
        """Write the files that it reads."""
        clusters, bindings = self._fleet
        self.clusters.write_text(_documents(clusters))
        self.bindings.write_text(_documents(bindings))

    @property
    def log(self) -> str:
        """What it has written so far."""
        return self.log_path.read_text(errors="replace")

    @property
    def memory(self) -> float:
        """Resident memory in MiB."""
        return int(Path(f"/proc/{self.popen.pid}/statm").read_text().split()[1]) * 4096 / 2**20

    def get(
        self, path: str, *, timeout: float = 30.0, headers: dict[str, str] | None = None
    ) -> requests.Response:
        """Send a GET request."""
        return self._request("GET", path, timeout, None, headers)

    def post(
        self,
        path: str,
        form: dict[str, str],
        *,
        timeout: float = 60.0,
        headers: dict[str, str] | None = None,
    ) -> requests.Response:
        """Send a form."""
        return self._request("POST", path, timeout, form, headers)

    def raw(self, text: str) -> bytes:
        """Send a request as text, and return the begin of the response."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as link:
            link.sendall(text.encode())
            return link.recv(65_536)

    def _request(
        self,
        method: str,
        path: str,
        timeout: float,
        form: dict[str, str] | None,
        headers: dict[str, str] | None,
    ) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.request(
                method,
                f"http://127.0.0.1:{self.port}{path}",
                data=form,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
            )


def _documents(builders: Sequence[ClusterBuilder] | Sequence[BindingBuilder]) -> str:
    return "\n".join(f"---\n{json.dumps(each.manifest())}" for each in builders)


@contextlib.contextmanager
def start_page(
    folder: Path,
    *flags: str,
    first: str = "",
    clusters: Sequence[ClusterBuilder] = (),
    bindings: Sequence[BindingBuilder] = (),
) -> Iterator[PageProcess]:
    """Start the page, wait until it listens, and kill it at the end."""
    page = PageProcess(folder, *flags, first=first, clusters=clusters, bindings=bindings)
    try:
        wait_for(
            lambda: "The page is on" in page.log or page.popen.poll() is not None, "the page", timeout=60
        )
        yield page
    finally:
        page.popen.kill()
        page.popen.wait()
