"""The benchmark of records: what it measures, on a small fleet, and the size of records of a large one."""

import pytest

from tools.bench.records import measure_records


@pytest.mark.parametrize(("clusters", "decisions"), [(20, 120), (5000, 120)])
def test_the_size_of_a_record_does_not_depend_on_the_number_of_clusters(
    clusters: int, decisions: int
) -> None:
    found = measure_records(clusters, decisions=decisions)
    assert found.decisions == decisions
    assert 500 < found.bytes_p50 < 1200
    assert found.bytes_p50 <= found.bytes_p99 <= 2048
    assert 0 < found.hot_micros < found.record_micros < found.record_p99
