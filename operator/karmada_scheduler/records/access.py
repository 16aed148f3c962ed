"""Who may read records on an address that others than this machine reach: whom the Karmada API server lets.

A reader needs a bearer token for ``AUDIENCE``, of somebody who may ``get`` the path ``PATH`` of the Karmada API server. That path is
not served; it stands for the records in rules of a ClusterRole (``nonResourceURLs``). Who may read gets all records.
"""

from __future__ import annotations

from typing import Final

AUDIENCE: Final = "karmada-pyscheduler-records"
"""A token for it reads records and nothing else: the API server refuses it."""
PATH: Final = "/karmada-pyscheduler/records"
