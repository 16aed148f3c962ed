"""The proxy of the environment, as golang.org/x/net v0.49.0 http/httpproxy finds it."""

from __future__ import annotations

import pytest

from karmada_pyscheduler.client.kubeconfig import proxy_of

NAME = "https://karmada.corp.example:5443"
ADDRESS = "https://10.1.2.3:6443"
ADDRESS_6 = "https://[fd00::1]:6443"


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        (NAME, {}, None),
        (NAME, {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        (NAME, {"https_proxy": "p:3128"}, "http://p:3128"),
        (NAME, {"HTTPS_PROXY": "http://a:1", "https_proxy": "http://b:1"}, "http://a:1"),
        (NAME, {"HTTP_PROXY": "http://p:3128"}, None),
        ("http://karmada.corp.example", {"HTTP_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://p:3128"}, None),
        ("https://127.0.0.5:6443", {"HTTPS_PROXY": "http://p:3128"}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://p:3128"}, None),
    ],
)
def test_the_proxy_is_that_of_the_scheme_and_the_machine_itself_has_none(
    server: str, environment: dict[str, str], proxy: str | None
) -> None:
    assert proxy_of(server, environment) == proxy


@pytest.mark.parametrize(
    ("server", "excepted", "others"),
    [
        (
            NAME,
            [
                "*",
                "corp.example",
                ".corp.example",
                "*.corp.example",
                "CORP.example",
                "a, karmada.corp.example:5443",
            ],
            ["", "corp.example:443", "*corp.example", "orp.example", "10.0.0.0/8"],
        ),
        ("https://corp.example", ["corp.example", "corp.example:443"], [".corp.example", "*.corp.example"]),
        (
            ADDRESS,
            ["10.0.0.0/8", "10.1.2.3", "10.1.2.3:6443"],
            ["10.1.2.3:80", "10.1.2", "10.1.2.3/33", "fd00::/8"],
        ),
        (ADDRESS_6, ["fd00::/8", "fd00::1", "[fd00::1]:6443"], ["[fd00::1]:1", "[fd00::1]", "10.0.0.0/8"]),
        ("https://[::ffff:10.1.2.3]", ["10.0.0.0/8", "10.1.2.3"], ["11.0.0.0/8"]),
    ],
)
def test_no_proxy_has_names_with_their_subdomains_addresses_and_networks(
    server: str, excepted: list[str], others: list[str]
) -> None:
    for listed, proxy in [
        *((entry, None) for entry in excepted),
        *((entry, "http://p:1") for entry in others),
    ]:
        for name in ("NO_PROXY", "no_proxy"):
            assert proxy_of(server, {"HTTPS_PROXY": "http://p:1", name: listed}) == proxy, listed
