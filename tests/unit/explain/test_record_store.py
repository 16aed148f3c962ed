"""The records in memory: one per binding, within a number and a size."""

import tracemalloc

from karmada_pyscheduler.records.recorder import OVERHEAD, RecordStore, StoredRecord
from karmada_scheduler.api.binding import BindingKey


def _key(name: str) -> BindingKey:
    return BindingKey("ResourceBinding", "demo", name)


def _stored(seq: int, size: int = 10) -> StoredRecord:
    return StoredRecord(seq, b"x" * size, b"")


def _filled(*names: str, max_bytes: int = 2**20, max_records: int = 100) -> RecordStore:
    store = RecordStore(max_bytes=max_bytes, max_records=max_records)
    for seq, name in enumerate(names, 1):
        store.put(_key(name), _stored(seq))
    return store


def test_the_last_record_of_a_binding_counts() -> None:
    store = _filled("a", "b", "a")
    assert [each.seq for each in store.last(10)] == [2, 3]
    assert len(store) == 2
    assert store.size == 2 * (10 + OVERHEAD)


def test_the_least_recently_decided_binding_is_evicted() -> None:
    store = _filled("a", "b", "a", max_records=2)
    assert store.put(_key("c"), _stored(4)) == 1
    assert store.get(_key("b")) is None
    assert [each.seq for each in store.last(10)] == [3, 4]


def test_the_size_is_a_limit_as_well() -> None:
    store = _filled("a", "b", max_bytes=3 * (10 + OVERHEAD))
    assert store.put(_key("c"), _stored(3)) == 0
    assert store.put(_key("d"), _stored(4)) == 1
    assert store.size == 3 * (10 + OVERHEAD)


def test_records_are_read_after_a_number_in_their_order() -> None:
    store = _filled("a", "b", "c", "d")
    assert [each.seq for each in store.since(1, 2)] == [2, 3]
    assert [each.seq for each in store.since(0, 100)] == [1, 2, 3, 4]
    assert list(store.since(4, 100)) == []
    assert [each.seq for each in store.last(2)] == [3, 4]


def test_only_the_end_of_the_last_record_is_replaced() -> None:
    store = _filled("a", "a")
    store.end(_key("a"), 1, b"late")
    assert store.last(1)[0].ending == b""
    store.end(_key("a"), 2, b"late")
    assert store.last(1)[0].body.endswith(b"xlate}")
    assert store.size == 14 + OVERHEAD
    store.end(_key("b"), 2, b"late")
    assert len(store) == 1


def test_a_repetition_keeps_the_record_in_its_place() -> None:
    store = _filled("a", "b")
    store.repeat(_key("a"), b",again")
    store.end(_key("a"), 1, b",end")
    store.repeat(_key("a"), b",twice")
    store.repeat(_key("c"), b",nothing")
    assert [each.seq for each in store.last(10)] == [1, 2]
    found = store.get(_key("a"))
    assert found is not None
    assert (found.body[10:], found.repetitions) == (b",end,twice}", 2)
    assert store.size == sum(each.size for each in store.last(10))


def test_a_forgotten_binding_has_no_record() -> None:
    store = _filled("a")
    store.forget(_key("a"))
    store.forget(_key("b"))
    assert (len(store), store.size) == (0, 0)


def test_the_counted_size_is_the_memory() -> None:
    tracemalloc.start()
    try:
        store = RecordStore(max_bytes=8 * 2**20, max_records=20_000)
        before = tracemalloc.get_traced_memory()[0]
        for seq in range(1, 20_000):  # many are evicted
            store.put(_key(f"deployment-{seq}"), StoredRecord(seq, bytes(800), bytes(90), hash(str(seq))))
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.8 * store.size < used < 1.05 * 8 * 2**20
