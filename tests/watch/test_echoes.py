"""What comes back of our own writes, in a real kopf."""

from __future__ import annotations

from tests.watch.api_server import ApiServer, modified
from tests.watch.watching import Watching, to, until


async def test_a_change_that_is_known_reaches_nobody_and_the_next_one_does() -> None:
    async with ApiServer() as api:
        watching = Watching(
            lambda: to(api), is_known=lambda _, manifest: manifest["metadata"]["resourceVersion"] == "8"
        )
        async with watching.running():
            await until(lambda: watching.versions == ["7"])
            for version in (8, 9):
                api.changes.put_nowait(modified(version))
            await until(lambda: len(watching.versions) == 2)
    assert watching.versions == ["7", "9"]
    assert watching.events[1] == ("Cluster", "MODIFIED", "m1")
