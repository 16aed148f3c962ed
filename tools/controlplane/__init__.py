"""A real Karmada control plane on this machine, for tests, the demo and people.

In reading order: `binaries` builds the programs (`golang` finds a compiler), `processes`
runs them, `pki` gives them certificates, `karmada` has their command lines and
manifests, `apiserver`, `installation`, `members` and `simulated` are the parts, `controlplane` puts them
together. `python -m tools.controlplane` is the command line, `demo` the demonstration.
"""

from .api import ApiError, Client, Object
from .controlplane import ControlPlane
from .members import Member, Node, RealMember
from .processes import Process, ProcessDiedError
from .simulated import SimulatedMember
from .waiting import WaitTimeoutError, wait_for

__all__ = [
    "ApiError",
    "Client",
    "ControlPlane",
    "Member",
    "Node",
    "Object",
    "Process",
    "ProcessDiedError",
    "RealMember",
    "SimulatedMember",
    "WaitTimeoutError",
    "wait_for",
]
