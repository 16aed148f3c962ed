"""manifests/ equals the output of the chart, and the tables of docs/operations.md agree with the code."""

from __future__ import annotations

from tests.deploy import reference
from tests.deploy.manifests import rendered


def test_the_manifests_are_up_to_date() -> None:
    outdated = [
        path.name for path, text in rendered().items() if not path.exists() or path.read_text() != text
    ]
    assert outdated == [], "run `make manifests`"


def test_the_operators_page_has_every_flag_and_every_metric() -> None:
    page, of_web = (each.read_text() for each in reference.PAGES)
    for text in (page, of_web):
        assert text == reference.updated(text), "run `make manifests`"
    assert "`karmada_scheduler_web_reviews_total{kind,result,source}` (counter)" in of_web
    assert page.count("| `--") > 25
    assert "`karmada_scheduler_schedule_attempts_total{result,schedule_type}` (counter)" in page
