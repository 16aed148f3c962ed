"""The record of writes, past states, backups, and what is kept."""

from __future__ import annotations

from random import Random

import orjson
import pytest

from tools.apiserver_model import ApiServerModel, State, Write, request_of
from tools.apiserver_model.tests.client import (
    BINDINGS,
    NOW,
    WEB,
    Watcher,
    binding,
    cluster,
    names,
    new_model,
    send,
    stored,
    version,
)


def replicas(state: State) -> dict[str, int]:
    """Return the replicas of the bindings of a state by name."""
    return {name: orjson.loads(raw)["spec"]["replicas"] for (_, name), raw in state.items()}


class TestWrites:
    def test_a_write_names_time_user_object_and_both_states(self) -> None:
        model = new_model()
        model.put(binding(), user="detector")
        request = request_of("PATCH", f"{WEB}/status", {}, b'{"status":{"a":1}}', user="scheduler")
        response = model.handle(request)
        created, patched = model.writes
        assert (created.user, created.before, created.event) == ("detector", None, "ADDED")
        assert created.request is None
        assert patched == Write(
            0, 102, NOW, "scheduler", "ResourceBinding", ("default", "web"), "status",
            created.after, response.body, request, "MODIFIED", response.body,
        )  # fmt: skip

    def test_a_deletion_has_no_state_after(self) -> None:
        model = new_model()
        model.put(binding())
        send(model, "DELETE", WEB)
        assert model.writes[-1].after is None
        assert model.writes[-1].before == model.writes[0].after
        assert orjson.loads(model.writes[-1].shown)["metadata"]["resourceVersion"] == "102"

    def test_observers_see_a_write_before_watches_do(self) -> None:
        model = new_model()
        order = []
        model.observers.append(lambda write: order.append(f"observer {write.revision}"))
        watcher = Watcher(model)
        watcher.watch._on_line = lambda _: order.append("watch")
        model.put(binding())
        assert order == ["observer 101", "watch"]

    def test_refused_writes_are_not_recorded(self) -> None:
        model = new_model()
        model.put(binding())
        send(model, "PATCH", WEB, {"metadata": {"resourceVersion": "7"}})
        send(model, "POST", BINDINGS, binding())
        assert len(model.writes) == 1


class TestStates:
    def test_every_past_state_is_known(self) -> None:
        model = new_model()
        expected: dict[int, dict[str, int]] = {100: {}}
        random, now = Random(1), dict[str, int]()
        for number in range(1500):
            name = random.choice("abcdefgh")
            if name in now and random.random() < 0.3:
                model.delete("ResourceBinding", "default", name)
                del now[name]
            else:
                now[name] = number
                model.put(binding(name, replicas=number))
            expected[model.revision] = dict(now)
        for revision in random.sample(sorted(expected), 100):
            assert replicas(model.state("ResourceBinding", 0, revision)) == expected[revision]
        assert model.state("ResourceBinding") == model.state("ResourceBinding", 0, model.revision)

    def test_a_revision_of_another_kind_is_a_state_too(self) -> None:
        model = new_model()
        model.put(binding())
        model.put(cluster("m1"))
        assert replicas(model.state("ResourceBinding", 0, 102)) == {"web": 1}
        assert model.state("Cluster", 0, 101) == {}

    def test_dropped_states_are_unknown_and_watches_from_there_have_expired(self) -> None:
        model = new_model(kept_writes=10)
        for number in range(100):
            model.put(binding(replicas=number))
        assert 10 <= len(model.writes) < 20
        assert replicas(model.state("ResourceBinding", 0, model.revision - 10)) == {"web": 89}
        with pytest.raises(LookupError):
            model.state("ResourceBinding", 0, model.revision - 20)
        assert Watcher(model, since=120).events[0]["type"] == "ERROR"
        assert len(Watcher(model, since=model.revision - 10).events) == 10

    def test_an_epoch_that_was_not_is_unknown(self) -> None:
        with pytest.raises(LookupError):
            new_model().state("Cluster", 1, 100)


class TestRestore:
    def test_objects_and_revision_are_those_of_the_backup(self) -> None:
        model = new_model()
        model.put(binding())
        backup = model.backup()
        model.put(binding(replicas=2))
        model.put(binding("db"))
        model.restore(backup)
        assert (model.revision, model.epoch) == (101, 1)
        assert names(send(model, "GET", BINDINGS)[1]) == ["web"]
        assert stored(model)["spec"] == {"replicas": 1}
        assert version(model) == "101"

    def test_revisions_are_used_again_and_epochs_tell_them_apart(self) -> None:
        model = new_model()
        model.put(binding())
        backup = model.backup()
        model.put(binding(replicas=2))
        model.restore(backup)
        model.put(binding(replicas=3))
        assert [(write.epoch, write.revision) for write in model.writes] == [(0, 101), (0, 102), (1, 102)]
        assert replicas(model.state("ResourceBinding", 0, 102)) == {"web": 2}
        assert replicas(model.state("ResourceBinding", 1, 102)) == {"web": 3}

    def test_a_backup_can_be_restored_twice(self) -> None:
        model = new_model()
        model.put(binding())
        backup = model.backup()
        for _ in range(2):
            model.put(binding(replicas=2))
            model.restore(backup)
            assert stored(model)["spec"] == {"replicas": 1}
        assert model.epoch == 2

    def test_all_watches_end_and_the_history_is_empty(self) -> None:
        model = new_model()
        model.put(binding())
        model.put(binding(replicas=2))
        backup = model.backup()
        model.put(binding(replicas=3))
        watcher = Watcher(model, since=103)
        restored: list[int] = []
        model.on_restore.append(lambda: restored.append(model.revision))
        model.restore(backup)
        assert watcher.is_ended
        assert restored == [102]
        assert Watcher(model, since=101).events[0]["type"] == "ERROR"
        later = Watcher(model, since=103)
        model.put(binding(replicas=4))
        model.put(binding(replicas=5))
        assert later.seen == ["MODIFIED web 104"], "what has the number of a lost write is not shown"

    def test_a_list_that_began_before_is_from_the_future(self) -> None:
        model = new_model()
        backup = model.backup()
        for name in ("a", "b"):
            model.put(binding(name))
        token = send(model, "GET", f"{BINDINGS}?limit=1")[1]["metadata"]["continue"]
        model.restore(backup)
        assert send(model, "GET", f"{BINDINGS}?limit=1&continue={token}")[0] == 504


class TestTheSame:
    def test_two_models_with_the_same_requests_are_equal_to_the_last_byte(self) -> None:
        def run() -> tuple[ApiServerModel, list[bytes]]:
            model = new_model()
            watcher = Watcher(model)
            for number in range(20):
                send(model, "POST", BINDINGS, binding(f"b{number % 7}", replicas=number))
                send(model, "PATCH", f"{BINDINGS}/b{number % 5}", {"spec": {"replicas": number}})
                send(model, "DELETE", f"{BINDINGS}/b{number % 3}")
            return model, watcher.lines

        (one, lines), (other, same_lines) = run(), run()
        assert one.writes == other.writes
        assert lines == same_lines
