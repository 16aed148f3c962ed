"""The terms of the Lease: who held it when, by its stored versions and the audit log."""

from __future__ import annotations

from bisect import bisect_right

from tools.live.records import Records


class Terms:
    """The history of one Lease. Identities in it become users by the audited writes that put them there.

    Attributes:
        count: How many times it went from one process to another.
    """

    def __init__(self, records: Records) -> None:
        namespace, name = records.facts["lease"].split("/")[-2:]
        key = f"{namespace}/{name}"
        users, accepted = dict[str, str](), dict[int, float]()
        self._renewals: dict[str, list[float]] = {}
        for request in records.requests:
            if (
                request.resource != "leases"
                or request.key not in (key, namespace)
                or not request.stored_version
            ):
                continue
            holder = ((request.response or {}).get("spec") or {}).get("holderIdentity")
            if holder:
                users[holder] = request.user
                accepted[request.stored_version] = request.done
                self._renewals.setdefault(request.user, []).append(request.received)
        self._versions: list[int] = []
        self._holders: list[tuple[str, float]] = []
        self.count = 0
        for state in records.leases.states.get(key, []):
            identity = (state.value or {}).get("spec", {}).get("holderIdentity") or ""
            # An identity that no audited write has put there is shown as it is.
            user = users.get(identity, identity)
            before = self._holders[-1][0] if self._holders else ""
            if user == before:
                continue
            self.count += bool(user)
            self._versions.append(state.revision)
            self._holders.append((user, accepted.get(state.revision, state.at)))

    def user_at(self, revision: int) -> str:
        """Return who held the Lease when a resourceVersion was made; "" if nobody did."""
        index = bisect_right(self._versions, revision)
        return self._holders[index - 1][0] if index else ""

    def begin_at(self, revision: int) -> float:
        """Return when the term began in which a resourceVersion was made."""
        index = bisect_right(self._versions, revision)
        return self._holders[index - 1][1] if index else 0.0

    def renewed(self, user: str, before: float) -> float | None:
        """Return when the last successful renewal by a user was received before a time; None if there was none."""
        renewals = self._renewals.get(user, [])
        index = bisect_right(renewals, before)
        return renewals[index - 1] if index else None

    def taken_from(self, user: str, at: float) -> float | None:
        """Return when the Lease went from a user to another one that holds it at a time; None if none does."""
        taken = None
        for holder, begin in self._holders:
            if begin > at:
                break
            if holder == user:
                taken = None
            elif holder and taken is None:
                taken = begin
        return taken
