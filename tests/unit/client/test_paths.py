"""Paths: a name from an object addresses that object or nothing."""

import ast
from pathlib import Path
from urllib.parse import unquote

import pytest

from karmada_pyscheduler.client.paths import ImpossibleNameError, group_path, path_of

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (group_path("v1"), "/api/v1"),
        (group_path("apps/v1"), "/apis/apps/v1"),
        (path_of("v1", "services"), "/api/v1/services"),
        (path_of("v1", "services", "a", namespace="b"), "/api/v1/namespaces/b/services/a"),
        (path_of("c.io/v1", "clusters", "m1", subresource="status"), "/apis/c.io/v1/clusters/m1/status"),
    ],
)
def test_a_path_has_the_shape_of_the_api(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize(
    "name", ["a?b", "a#b", "a b", "a\r\nb", "ä", "a;b", "system:node", "a&b=c", "a\\b", "\0"]
)
def test_every_character_of_a_name_is_part_of_its_segment(name: str) -> None:
    path = path_of("v1", "things", name, namespace=name)
    parts = path.split("/")
    assert path.isascii()
    assert not set("?# \r\n") & set(path)
    assert [unquote(part) for part in parts] == ["", "api", "v1", "namespaces", name, "things", name]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "m1/status", "../x", "a%2Fb", "%2e%2e", "/"])
def test_a_name_that_would_address_another_object_is_refused_as_not_found(name: str) -> None:
    with pytest.raises(ImpossibleNameError) as caught:
        path_of("v1", "things", name)
    assert caught.value.is_object_not_found(name)
    if name:
        with pytest.raises(ImpossibleNameError):
            path_of("v1", "things", namespace=name)


def test_no_other_module_builds_paths_of_the_api_server() -> None:
    """Constants may; a text with a name in it may not."""
    builders = []
    for package in ("operator", "advisor", "plugins"):
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if not isinstance(node, ast.JoinedStr):
                    continue
                text = "{}".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
                if any(word in text for word in ("/api/", "/apis/", "namespaces/", "/clusters/")):
                    builders.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    own_pages = "advisor/karmada_advisor/web/pages.py"
    found = [place for place in builders if not place.startswith(own_pages)]
    assert {place.partition(":")[0] for place in found} == {"operator/karmada_pyscheduler/client/paths.py"}
