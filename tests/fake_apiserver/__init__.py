"""An API server for tests of the whole scheduler process, with faults on demand.

``FakeApiServer`` serves the part of a Karmada API server that a scheduler uses, from memory, in a thread of its own.
``objects`` builds Clusters and bindings. ``process`` starts the real scheduler as a process that connects to it.

    with FakeApiServer() as server, start_scheduler(server, tmp_path) as scheduler:
        server.put(cluster("m1"))
        server.put(binding("web", replicas=2))
        wait_for(lambda: server.targets("web") == {"m1": 2}, "web to be placed", scheduler)
"""

from .faults import Answer, Fault, Gate, html, status
from .objects import binding, cluster, deployment, manifest_text, nested, policy, profile
from .process import SchedulerProcess, start_scheduler, wait_for
from .server import FakeApiServer

__all__ = [
    "Answer",
    "FakeApiServer",
    "Fault",
    "Gate",
    "SchedulerProcess",
    "binding",
    "cluster",
    "deployment",
    "html",
    "manifest_text",
    "nested",
    "policy",
    "profile",
    "start_scheduler",
    "status",
    "wait_for",
]
