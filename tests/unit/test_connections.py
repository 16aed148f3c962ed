"""What the servers of tests leave behind."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings

from tests.connections import listening
from tests.fake_apiserver import FakeApiServer


def test_a_connection_that_is_accepted_while_a_fake_api_server_ends_is_closed() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(20):
            with FakeApiServer() as server:
                links = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(3)]
            for link in links:
                link.close()
        gc.collect()
    assert [str(each.message) for each in caught] == []


async def test_a_connection_whose_handler_has_not_begun_is_closed() -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for turns_before_the_end in range(6):
            async with listening(wait) as port:
                link = socket.create_connection(("127.0.0.1", port))
                for _ in range(turns_before_the_end):
                    await asyncio.sleep(0)
            link.close()
        gc.collect()
    assert [str(each.message) for each in caught] == []
