"""The benchmark of HTTP clients works."""

from __future__ import annotations

from tools.bench import http_client


def test_both_clients_are_measured_against_a_server_with_client_certificates() -> None:
    result = http_client.measure(count=20, rounds=1, in_flight=2, delay=0.0)
    assert result.own_micros > 0
    assert result.aiohttp_micros > 0
    assert result.saved_micros == result.aiohttp_micros - result.own_micros


def test_a_placed_binding_takes_two_patches_and_two_events() -> None:
    assert [each.method for each in http_client.requests_of_a_binding()] == ["PATCH", "PATCH", "POST", "POST"]
