"""Label selectors as kubectl takes them."""

from __future__ import annotations

import pytest

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.named_binding import selector_of

LABELS = {"app": "web", "tier": "prod", "example.com/team": "a.b", "empty": "", "cpus": "4", "in": "x"}


@pytest.mark.parametrize(
    "written",
    [
        "",
        "app=web",
        "app==web,tier=prod",
        "app!=api",
        "missing!=x",
        "app in (api, web)",
        "tier notin (test,dev)",
        "missing notin (x)",
        "app",
        "!missing",
        "example.com/team=a.b , app",
        "empty=",
        "empty in ()",
        "empty in (a,,b)",
        "cpus>3",
        "cpus < 5,cpus>1",
        "in in (notin,x)",
    ],
)
def test_a_selector_matches(written: str) -> None:
    assert selector_of(written)(LABELS)


@pytest.mark.parametrize(
    "written",
    [
        "app=api",
        "app!=web",
        "app in (api)",
        "app notin (web)",
        "missing",
        "!app",
        "app,tier=test",
        "missing=",
        "cpus>4",
        "app>3",
        "missing<3",
    ],
)
def test_a_selector_does_not_match(written: str) -> None:
    assert not selector_of(written)(LABELS)


@pytest.mark.parametrize(
    "written", ["=", "a=b=c", "a in", "a in (b", "a ~ b", "!a=b", "a=b c", "(a)", ",", "app=web,", "app=web, ", ",app", "a,,b", "a>x", "a>", "a>=1",
        "a>9223372036854775808", "a in (b c)", "appin (web)", "a=-b", "/a=b", "a/=b", "A/b=c", "a=b!c", f"a={'x' * 64}"]
)  # fmt: skip
def test_what_is_no_selector_is_refused_with_its_place(written: str) -> None:
    with pytest.raises(NoAnswerError, match=r"--selector: .* cannot be read from"):
        selector_of(written)
