"""HTTP extenders as a configuration file describes them, with Kubernetes' fields and rules.

Source: kubernetes v1.35 staging/src/k8s.io/kube-scheduler/config/v1/types.go Extender, ExtenderTLSConfig;
pkg/scheduler/apis/config/validation/validation.go validateExtenders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from karmada_scheduler.config.problems import ConfigProblem
from karmada_scheduler.config.structure import ALIASES, KEY, READ, seconds

DEFAULT_HTTP_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderTLS:
    """TLS settings for an extender. If both data and a file are given, the data is used.

    Attributes:
        insecure: Do not verify the server's certificate.
        server_name: Name for SNI and verification, instead of the URL's host.
        cert_data, key_data, ca_data: PEM.
    """

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = field(default=b"", repr=False)
    key_data: bytes = field(default=b"", repr=False)
    ca_data: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedResource:
    """A resource that an extender manages.

    Attributes:
        name: An extended resource: ``example.com/gpu``.
        ignored_by_scheduler: Accepted for Kubernetes' files, without effect: capacity estimates count the resource.
    """

    name: str
    ignored_by_scheduler: bool = False


def _timeout(text: object) -> float:
    """Read a time-out; 0 means the default, as in Kubernetes."""
    return seconds(text) or DEFAULT_HTTP_SECONDS


_USER_INFO: Final = re.compile(r"(?<=//)[^/?#]*@")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderConfig:
    """One entry of ``extenders``.

    Attributes:
        url_prefix: Its URL; a verb is appended after a slash.
        filter_verb, prioritize_verb, bind_verb: Paths of its verbs; "" if it does not have the verb.
        preempt_verb: Accepted for Kubernetes' files; never called, because nothing is preempted.
        weight: Factor of its scores; 1 or more if it has a prioritize verb.
        enable_https: Do not verify the server's certificate without a CA, as in Kubernetes. The URL determines
            whether TLS is used.
        tls_config: None for TLS with the system's CAs, if the URL's scheme is https.
        http_timeout: Seconds for one request; 0 in a file is read as the default.
        node_cache_capable: It has the clusters and receives their names only. Files may also use
            ``clusterCacheCapable``.
        managed_resources: It is called for bindings that request one of them; for all bindings if empty.
        ignorable: Decisions continue without it when it fails.
    """

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, metadata={KEY: "enableHTTPS"})
    tls_config: ExtenderTLS | None = None
    http_timeout: float = field(default=DEFAULT_HTTP_SECONDS, metadata={READ: _timeout})
    node_cache_capable: bool = field(default=False, metadata={ALIASES: ("clusterCacheCapable",)})
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False

    @property
    def shown_url(self) -> str:
        """The ``url_prefix`` without user and password, for logs and conditions."""
        return _USER_INFO.sub("", self.url_prefix)


def problems_in(extenders: Sequence[ExtenderConfig]) -> Iterator[ConfigProblem]:
    """Check rules that the types do not express; also whether files are readable.

    Yields:
        Problems with paths from the list of extenders on: ``[0].weight``.
    """
    binders, resources = 0, set[str]()
    for position, extender in enumerate(extenders):
        for problem in _problems_of(extender):
            yield problem.below(f"[{position}]")
        binders += bool(extender.bind_verb)
        if extender.bind_verb and binders > 1:
            yield ConfigProblem(
                f"[{position}].bindVerb", "only one extender can bind, and an earlier one does"
            )
        for index, resource in enumerate(extender.managed_resources):
            path = f"[{position}].managedResources[{index}].name"
            if error := _problem_with_resource(resource.name):
                yield ConfigProblem(path, error)
            elif resource.name in resources:
                yield ConfigProblem(path, f'duplicate extender managed resource name "{resource.name}"')
            resources.add(resource.name)


def _problems_of(extender: ExtenderConfig) -> Iterator[ConfigProblem]:
    try:
        url = urlsplit(extender.url_prefix)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable:
        yield ConfigProblem(
            "urlPrefix", f'"{extender.shown_url}" is not an address such as https://host:port/path'
        )
    if extender.prioritize_verb and extender.weight <= 0:
        yield ConfigProblem("weight", "must be 1 or more where there is a prioritizeVerb")
    if extender.http_timeout < 0:
        yield ConfigProblem("httpTimeout", "must not be negative")
    if extender.tls_config is not None:
        for problem in _tls_problems(extender.tls_config):
            yield problem.below("tlsConfig")


def _tls_problems(tls: ExtenderTLS) -> Iterator[ConfigProblem]:
    if tls.insecure and (tls.ca_file or tls.ca_data):
        yield ConfigProblem("insecure", "cannot be combined with a CA: either verify the server or do not")
    has_certificate, has_key = bool(tls.cert_file or tls.cert_data), bool(tls.key_file or tls.key_data)
    if has_certificate and not has_key:
        yield ConfigProblem("", "needs keyFile or keyData for a certificate")
    if has_key and not has_certificate:
        yield ConfigProblem("", "needs certFile or certData for a key")
    for key, name, replaced in (
        ("certFile", tls.cert_file, tls.cert_data),
        ("keyFile", tls.key_file, tls.key_data),
        ("caFile", tls.ca_file, tls.ca_data),
    ):
        if name and not replaced:
            try:
                with Path(name).open("rb"):
                    pass
            except (OSError, ValueError) as error:  # ValueError: a NUL in the path
                text = getattr(error, "strerror", None) or error
                yield ConfigProblem(key, f"cannot read {name}: {text}")


_DOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def _problem_with_resource(name: str) -> str:
    """Kubernetes' rule for extended resources: a domain of one's own, a slash, a name."""
    domain, slash, rest = name.partition("/")
    if (
        not slash
        or not _DOMAIN.fullmatch(domain)
        or not _NAME.fullmatch(rest)
        or domain == "kubernetes.io"
        or domain.endswith(".kubernetes.io")
        or name.startswith("requests.")
    ):
        return f'"{name}" is an invalid extended resource name; valid is: example.com/gpu'
    return ""
