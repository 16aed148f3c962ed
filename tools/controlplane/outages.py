"""Outages in a control plane that people keep running: the rest goes on, and what ended can be started again.

A file stopped/<name> in its folder keeps a member, scheduler, estimator or page stopped:

    touch stopped/real1   # ends the API server of real1
    rm stopped/real1      # starts it again

A program that ends by itself, or is killed, gets such a file.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NoReturn

from . import karmada
from .controlplane import ControlPlane
from .processes import Process
from .waiting import WaitTimeoutError

NEEDED: Final = frozenset(
    {
        "etcd",
        "karmada",
        karmada.AGGREGATED,
        "karmada-webhook",
        "karmada-controller-manager",
        "kube-controller-manager",
    }
)
"""The programs without which there is no control plane; if one of them ends, all end."""


class Outages:
    """Stops and starts the programs that a control plane can be without.

    Attributes:
        folder: The files of stopped programs.
    """

    def __init__(self, plane: ControlPlane, say: Callable[[str], None]) -> None:
        """Take a control plane that runs; ``say`` gets a line for each program that ends or starts."""
        self.folder: Final = plane.folder / "stopped"
        self.folder.mkdir()
        self._plane = plane
        self._say = say
        self._stopped: dict[str, Process] = {}

    def help_lines(self) -> list[str]:
        """Return the commands for an outage of a member, and for its end."""
        file = self.folder / next(iter(self._plane.members), "NAME")
        return [
            "An outage of a member or scheduler, and its end (the rest goes on):",
            f"  touch {file}",
            f"  rm {file}",
        ]

    def watch(self) -> NoReturn:
        """Look twice a second, until an exception ends it.

        Raises:
            ProcessDiedError: A program ended that the control plane needs.
        """
        while True:
            self.look()
            time.sleep(0.5)

    def look(self) -> None:
        """Stop and start programs as the files say, and report those that have ended.

        Raises:
            ProcessDiedError: A program ended that the control plane needs.
        """
        for process in self._plane.processes:
            file = self.folder / process.name
            if process.name in NEEDED:
                process.check()
            elif process.exit_status is not None:
                status = process.exit_status
                file.touch()
                self._end(process, f"ended with status {status}, its log is {process.log}")
            elif file.exists():
                self._end(process, "is stopped")
        for name in [name for name in self._stopped if not (self.folder / name).exists()]:
            self._start(self._stopped.pop(name))

    def _end(self, process: Process, what: str) -> None:
        if member := self._plane.members.get(process.name):
            member.kill()
            what += "; Karmada reports it as not ready about 35 s later"
        else:
            process.stop()
            self._plane.forget(process)
        self._stopped[process.name] = process
        self._say(f"{process.name} {what}. To start it again: rm {self.folder / process.name}")

    def _start(self, process: Process) -> None:
        try:
            if member := self._plane.members.get(process.name):
                member.restart(lambda: None)
            else:
                self._plane.spawn(process.name, process.argv, process.env)
        except WaitTimeoutError as error:
            self._say(f"{process.name} did not start: {error}")
        else:
            self._say(f"{process.name} is started again")
