"""Reading documents: what it costs when objects in them are unusable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_advisor.fleet import files
from karmada_advisor.fleet.files import as_binding, read
from karmada_scheduler.config import yaml_document


@pytest.mark.parametrize(
    ("suffix", "write", "readings"), [("yaml", yaml.safe_dump, 2), ("json", json.dumps, 0)]
)
def test_a_document_is_read_once_more_for_all_its_unusable_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, write: Any, readings: int
) -> None:
    binding = {"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "spec": {"replicas": "2"}}
    items = [{**binding, "metadata": {"name": f"w{number}", "namespace": "d"}} for number in range(20)]
    path = tmp_path / f"bindings.{suffix}"
    path.write_text(write({"apiVersion": "v1", "kind": "List", "items": items}))
    read_document, texts = yaml_document.read_document, list[str]()

    def counted(text: str, **options: Any) -> Any:
        texts.append(text)
        return read_document(text, **options)

    monkeypatch.setattr(files, "read_document", counted)
    found = read([str(path)], as_binding)
    assert (len(found.objects), len(found.problems), len(texts)) == (0, 20, readings)
