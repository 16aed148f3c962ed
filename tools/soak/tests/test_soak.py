"""The whole tool, with the real scheduler process: planted leaks are found, and only these."""

import pytest

from tools.soak.judge import Judgement, judge
from tools.soak.planted import LEAKS
from tools.soak.run import Plan, Soak


@pytest.fixture(scope="module")
def leaking(tmp_path_factory: pytest.TempPathFactory) -> Judgement:
    """The judgement of a short run with all leaks at once."""
    plan = Plan(
        events=4000, every=200, clusters=20, bindings=100, policies=10, takeovers=(),
        cut_every=1000, expire_every=1500, refuse_every=1500, leaks=tuple(LEAKS),
    )  # fmt: skip
    soak = Soak(plan, tmp_path_factory.mktemp("soak"))
    assert len(list(soak.samples_of_run())) >= 15
    assert soak.unsettled == 0
    assert soak.faults.watches_cut
    assert soak.faults.watches_expired
    assert soak.faults.writes_failed
    # Garbage in cycles stays for as long as full collections are rare.
    assert not [
        name for name in soak.garbage if name.endswith(("BindingTransaction", "PersistentConnection"))
    ]
    return judge(soak.samples)


@pytest.mark.parametrize(
    ("leak", "figure"),
    [
        ("bindings", "._planted"),
        ("filter-cache", "._filter_results._values"),
        ("series", "series"),
        ("tasks", "tasks"),
        ("descriptors", "descriptors"),
    ],
)
def test_a_planted_leak_is_found(leaking: Judgement, leak: str, figure: str) -> None:
    assert leak in LEAKS
    assert any(name.endswith(figure) for name in leaking.leaks), leaking.problems


def test_the_live_set_is_not_found(leaking: Judgement) -> None:
    assert not any("cached_objects" in name or "workqueue" in name for name in leaking.leaks)
    assert "threads" not in leaking.leaks
