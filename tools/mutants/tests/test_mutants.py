"""The mistakes that are planted, where, and how functions get them."""

import ast
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from tools.mutants import mutation, operators, results
from tools.mutants.__main__ import sample
from tools.mutants.live import Live
from tools.mutants.mutation import PROBE, Module, Mutation
from tools.mutants.packages import PACKAGES
from tools.mutants.report import Row
from tools.mutants.results import Result, Results


def mistakes(expression: str) -> list[str]:
    return [ast.unparse(new) for _, new in operators.expressions(ast.parse(expression, mode="eval").body)]


@pytest.mark.parametrize(
    ("expression", "instead"),
    [
        ("a < b", ["a <= b", "a >= b"]),
        ("a < b <= c", ["a <= b <= c", "a >= b <= c", "a < b < c", "a < b > c"]),
        ("a is None", ["a is not None"]),
        ("a and b", ["b", "a"]),
        ("a or b or c", ["b or c", "a or c", "a or b"]),
        ("not a", ["a"]),
        ("-a", ["a"]),
        ("a - b", ["a + b"]),
        ("a | b", ["a & b"]),
        ("True", ["False"]),
        ("7", ["8"]),
        ("min(a, b)", ["max(a, b)"]),
        ("(*a, b)", ["(b,)", "(*a,)"]),
        ("replace(a, b=1, c=2)", ["replace(a, c=2)", "replace(a, b=1)"]),
        ("[a for a in b if c]", ["[a for a in b]"]),
        ("a if b else c", ["a if not b else c"]),
        ("'a' + b", []),
        ("[a] + b", []),
        ("(a, b)", []),
        ("a(b)", []),
    ],
)
def test_an_expression_is_replaced_by_mistakes(expression: str, instead: list[str]) -> None:
    assert mistakes(expression) == instead


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    monkeypatch.setattr(mutation, "ROOT", tmp_path)
    monkeypatch.setattr("tools.mutants.live.ROOT", tmp_path)
    (tmp_path / "counting.py").write_text(
        textwrap.dedent('''
        LIMIT = 3

        class Counter:
            """Counts."""

            def __init__(self, start: int = 0) -> None:
                self.count = start

            @property
            def is_full(self) -> bool:
                """Whether no more can be counted."""
                log.info("%s", self.count > LIMIT)
                if self.count > LIMIT + 1000:
                    raise ValueError(f"{self.count + 1} are too many")
                return self.count >= LIMIT

            def add(self, values: list[int]) -> None:
                self.count += sum(map(lambda value: value + 0, values))

            def __repr__(self) -> str:
                return str(self.count + 1)

        class log:
            info = print
        ''')
    )
    return Module("counting.py")


def find(module: Module, before: str, after: str) -> Mutation:
    return next(each for each in module.mutations if (each.before, each.after) == (before, after))


def load(module: Module) -> ModuleType:
    loaded = ModuleType("counting")
    exec(module.code(), vars(loaded))
    return loaded


def test_messages_defaults_constants_and_representations_are_left_alone(module: Module) -> None:
    found = {(each.function, each.before, each.after) for each in module.mutations}
    assert found == {
        ("Counter.is_full", "self.count > LIMIT + 1000", "self.count >= LIMIT + 1000"),
        ("Counter.is_full", "self.count > LIMIT + 1000", "self.count <= LIMIT + 1000"),
        ("Counter.is_full", "LIMIT + 1000", "LIMIT - 1000"),
        ("Counter.is_full", "1000", "1001"),
        ("Counter.is_full", "raise ValueError(f'{self.count + 1} are too many')", "pass"),
        ("Counter.is_full", "self.count >= LIMIT", "self.count > LIMIT"),
        ("Counter.is_full", "self.count >= LIMIT", "self.count < LIMIT"),
        ("Counter.add", "self.count += sum(map(lambda value: value + 0, values))", "pass"),
        (
            "Counter.add",
            "self.count += sum(map(lambda value: value + 0, values))",
            "self.count -= sum(map(lambda value: value + 0, values))",
        ),
        ("Counter.add", "value + 0", "value - 0"),
        ("Counter.add", "0", "1"),
    }


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ("self.count += sum(map(lambda value: value + 0, values))", "pass", 0),
        ("0", "1", 4),
        ("value + 0", "value - 0", 2),
    ],
)
def test_a_function_that_is_loaded_already_gets_the_mistake(
    module: Module, before: str, after: str, count: int
) -> None:
    loaded = load(module)
    counter, live = loaded.Counter(), Live(["counting.py"])
    planted = find(module, before, after)
    planted.apply()
    assert live.replace("counting.py", module.code(), (planted.function, planted.first_line)) == 1
    counter.add([1, 1])
    assert counter.count == count


def test_probes_say_which_blocks_are_reached(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load(module)
    reached: set[tuple[str, str]] = set()
    monkeypatch.setitem(sys.modules["builtins"].__dict__, PROBE, reached.add)
    live = Live(["counting.py"])
    module.add_probes()
    assert live.replace("counting.py", module.code()) == 4
    blocks = {each.before: each.block for each in module.mutations}
    assert not loaded.Counter(2).is_full
    assert ("counting.py", blocks["LIMIT + 1000"]) in reached
    assert ("counting.py", blocks["raise ValueError(f'{self.count + 1} are too many')"]) not in reached


def test_a_sample_is_drawn_by_its_seed_and_keeps_what_it_has_when_more_is_drawn(module: Module) -> None:
    few, more, other = (
        {each.id for each in sample(module.mutations, count, seed)}
        for count, seed in ((4, 1), (7, 1), (4, 2))
    )
    assert len(few) == 4
    assert few < more
    assert few != other


def test_a_result_is_kept_until_the_function_or_the_test_that_fails_changes(
    module: Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "ROOT", tmp_path)
    planted = find(module, "0", "1")
    (tmp_path / "test_counting.py").write_text("one")
    test = "test_counting.py::test_it"
    store = Results(tmp_path / "kept" / "results.jsonl")
    store.add(Result(planted.id, results.KILLED, test, results.key(planted, module, test, [])))
    again = Results(tmp_path / "kept" / "results.jsonl")
    assert again.current(planted, module, []) == store.last(planted)
    path = tmp_path / "counting.py"
    path.write_text(path.read_text().replace("LIMIT + 1000", "LIMIT + 2000"))
    elsewhere = Module("counting.py")
    assert again.current(find(elsewhere, "0", "1"), elsewhere, [])
    path.write_text(path.read_text().replace("values: list", "values: tuple"))
    changed = Module("counting.py")
    assert again.current(find(changed, "0", "1"), changed, []) is None
    results._text.cache_clear()
    (tmp_path / "test_counting.py").write_text("two")
    assert again.current(planted, module, []) is None
    results._text.cache_clear()


def test_mistakes_that_change_nothing_are_seen_and_survivors_are_not(module: Module) -> None:
    row, planted = Row("counting", 11), find(module, "0", "1")
    for outcome in (results.KILLED, results.TIMEOUT, results.EQUIVALENT, results.UNREACHED):
        row.add(planted, outcome, "")
    assert row.cells() == ("counting", "11", "4", "1", "1", "1", "1", "75.0 %")


def test_each_mistake_that_is_said_to_change_nothing_can_still_be_made() -> None:
    possible = {
        (each.module.partition("/")[2], each.function, each.before, each.after, each.nth)
        for package in PACKAGES
        for path in package.paths()
        for each in Module(path).mutations
    }
    assert set(results.equivalents()) - possible == set()
