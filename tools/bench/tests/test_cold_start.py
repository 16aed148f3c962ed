"""The benchmark of a cold start, on an installation small enough for every day: the tests check counts, not durations."""

from pathlib import Path

from karmada_scheduler.client.lists import LIST_PAGE
from tools.bench import cold_start
from tools.bench.recording import Sizes
from tools.controlplane.processes import Supervisor


def test_a_start_places_new_bindings_writes_nothing_else_and_lists_each_kind_once(
    tmp_path: Path,
) -> None:
    sizes = Sizes(bindings=LIST_PAGE + 50, clusters=220)
    with Supervisor(tmp_path / "logs") as supervisor:
        bench = cold_start.Bench(sizes, tmp_path, supervisor)
        try:
            result = bench.run(rate=50, seconds=1, limit=60)
        finally:
            bench.close()
    assert (result.placed, result.moved) == (3, 0)
    kinds = (
        "clusters",
        "propagationpolicies",
        "clusterpropagationpolicies",
        "resourcebindings",
        "clusterresourcebindings",
    )
    for verb in ("LIST", "VERSION", "WATCH"):
        expected = dict.fromkeys(kinds, 1)
        if verb == "LIST":
            expected["resourcebindings"] = 2  # pages
        assert {kind: result.requests[f"{verb} {kind}"] for kind in kinds} == expected, verb
    writes = {name: count for name, count in result.requests.items() if name.startswith("PATCH")}
    assert writes == {"PATCH resourcebindings": 3, "PATCH resourcebindings/status": 3}
    assert result.events >= 40
    assert "3 placed" in cold_start.report(result)
