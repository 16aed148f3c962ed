"""A model of a Karmada API server in memory, for simulations and for the fake API server of tests."""

from karmada_pyscheduler.client.http_connection import Response
from tools.apiserver_model.front_end import FrontEnd
from tools.apiserver_model.kinds import BY_NAME, KINDS, Key, Kind, Object, Target, target_of
from tools.apiserver_model.messages import RefusedError, status
from tools.apiserver_model.model import ApiServerModel
from tools.apiserver_model.requests import Request, request_of
from tools.apiserver_model.store import Author, Backup, State, Write
from tools.apiserver_model.watch_requests import WatchRules
from tools.apiserver_model.watches import OnLine, Watch
from tools.apiserver_model.writer import Admission

__all__ = [
    "BY_NAME",
    "KINDS",
    "Admission",
    "ApiServerModel",
    "Author",
    "Backup",
    "FrontEnd",
    "Key",
    "Kind",
    "Object",
    "OnLine",
    "RefusedError",
    "Request",
    "Response",
    "State",
    "Target",
    "Watch",
    "WatchRules",
    "Write",
    "request_of",
    "status",
    "target_of",
]
