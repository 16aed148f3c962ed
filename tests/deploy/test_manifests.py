"""manifests/ is what the chart makes."""

from __future__ import annotations

from tests.deploy.manifests import rendered


def test_the_manifests_are_up_to_date() -> None:
    outdated = [
        path.name for path, text in rendered().items() if not path.exists() or path.read_text() != text
    ]
    assert outdated == [], "run `make manifests`"
