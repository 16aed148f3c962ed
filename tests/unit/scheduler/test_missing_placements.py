"""Bindings without a placement are named once each, also when a name is used again."""

from __future__ import annotations

import logging

import pytest

from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.scheduler.unplaced import MissingPlacements
from karmada_scheduler.api.binding import Binding
from tests import manifests


def made(name: str, *, uid: str = "") -> Binding:
    manifest = manifests.binding(name, placement=None)
    manifest["metadata"]["uid"] = uid or f"uid-{name}"
    return Binding.from_manifest(manifest)


def test_those_that_were_deleted_or_replaced_are_forgotten_before_more_are_kept_than_exist(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bindings = BindingCache()
    missing = MissingPlacements(bindings)
    for binding in (made("kept"), made("replaced", uid="another")):
        bindings.put(binding)
    for name in ("kept", "replaced", "deleted"):
        missing.warn_once(made(name))
    assert len(missing) == 3
    missing.warn_once(made("new"))
    assert len(missing) == 2
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        for name in ("kept", "new"):
            missing.warn_once(made(name))
    assert caplog.text == ""
    with caplog.at_level(logging.WARNING):
        missing.warn_once(made("kept", uid="another"))
    assert "failed to get placement from resourceBinding(demo/kept)" in caplog.text
