"""A model of a Karmada API server in memory, for simulations and for the stand-in server of tests."""

from karmada_scheduler.client.http import Response
from tools.apiserver_model.kinds import BY_NAME, KINDS, Key, Kind, Object, Target, target_of
from tools.apiserver_model.messages import Request, request_of, status
from tools.apiserver_model.model import Admission, ApiServerModel
from tools.apiserver_model.store import Author, Backup, State, Write
from tools.apiserver_model.watches import OnLine, Watch

__all__ = [
    "BY_NAME",
    "KINDS",
    "Admission",
    "ApiServerModel",
    "Author",
    "Backup",
    "Key",
    "Kind",
    "Object",
    "OnLine",
    "Request",
    "Response",
    "State",
    "Target",
    "Watch",
    "Write",
    "request_of",
    "status",
    "target_of",
]
