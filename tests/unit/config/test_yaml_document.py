"""The reader of YAML: JSON's types, and an error with line and column for everything that is not bounded."""

import tracemalloc

import pytest

from karmada_advisor.views.fields import as_yaml
from karmada_scheduler.config.yaml_document import MAX_DEPTH, MAX_REPEATED, YamlError, read_document


def problem(text: str, *, lines_before: int = 0) -> str:
    with pytest.raises(YamlError) as refused:
        read_document(text, lines_before=lines_before)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# nothing", None),
        ("[yes, No, TRUE, off, ~, null, '']", [True, False, True, False, None, None, ""]),
        ("[0, -1, +1_000, 0b11, -0x1F, 010, 08]", [0, -1, 1000, 3, -31, 8, 8]),
        ("[1.5, .5, 1., 1.5e+3, 1e3, 1.2.3, -, +, .]", [1.5, 0.5, 1, 1500, 1000, "1.2.3", "-", "+", "."]),
        ("[18446744073709551615, -9223372036854775808]", [2**64 - 1, -(2**63)]),
        ("[2026-01-31T13:00:00Z, 2026-02-31, 12:30, 1:2.5]", ["2026-01-31T13:00:00Z", "2026-02-31", "12:30", "1:2.5"]),
        ("[!!str 5, !!int '5', !!float 5, !!bool yes, !!null '', ! 5, ! '5', =]", ["5", 5, 5, True, None, "5", "5", "="]),
        ("1: a\ntrue: b\n'~': c\n'<<': d", {"1": "a", "true": "b", "~": "c", "<<": "d"}),
        ("a: &a {x: 1, w: 2}\nb: {<<: *a, w: 3}", {"a": {"x": 1, "w": 2}, "b": {"x": 1, "w": 3}}),
        ("b: {w: 3, <<: [{x: 1}, {x: 2, z: 4}]}", {"b": {"x": 1, "z": 4, "w": 3}}),
        ("a: &k text\n*k : b\nc: &m {d: e}\nf: *m", {"a": "text", "text": "b", "c": {"d": "e"}, "f": {"d": "e"}}),
        ("a: |\n  x\n  y\nb: >-\n  x\n  y", {"a": "x\ny\n", "b": "x y"}),
        ("\ufeffa: 1", {"a": 1}),
        (f"[{'1' * 5000}, 0x{'f' * 5000}]", ["1" * 5000, "0x" + "f" * 5000]),
    ],
)  # fmt: skip
def test_values_have_the_types_of_json(text: str, value: object) -> None:
    assert read_document(text).value == value
    assert repr(read_document(text).value) == repr(value)  # 1 == True


@pytest.mark.parametrize(
    ("scalars", "value", "key"),
    [
        ("y Y yes Yes YES on On ON true True TRUE", True, "true"),
        ("n N no No NO off Off OFF false False FALSE", False, "false"),
        ("yEs oN tRue nUll 0x 0x_ 0xg 0b2 0o8 1p4 0x1p4 100m 1d 5mm 1Ki 1.2.3 12:30 1,5 _1 ._5 1e400 1.0e+999", str, None),
        ("0x10000000000000000 0xfffffffffffffffff 2026-01-31", str, None),
        ("8 08 010 0o10 0O10 0x8 0X8 0b1000 0B1000 +8 0_8 8. 8.0 .8e1 80e-1 0.8e+1", 8, "8"),
        ("-15 -0o17 -017 -0xF -0b1111 -1.5e1", -15, "-15"),
        ("1e3 1E3 1.e3 1_000 1_e3 +1e03", 1000, "1000"),
        ("1.20 1.2 01.2 1.2_0 12e-1", 1.2, "1.2"),
        ("123456.789", 123456.789, "123456.79"),
        ("18446744073709551616", 18446744073709551616.0, "1.8446744e+19"),
        ("-9223372036854775809", -9223372036854775809.0, "-9.223372e+18"),
        ("1e21 1000000000000000000000", 1e21, "1e+21"),
    ],
)  # fmt: skip
def test_a_scalar_without_quotes_is_what_kubernetes_makes_of_it(
    scalars: str, value: object, key: str | None
) -> None:
    """As ``YAMLToJSON`` of sigs.k8s.io/yaml v1.6.0 gave them."""
    for scalar in scalars.split():
        expected = scalar if value is str else value
        assert repr(read_document(f"a: {scalar}").value) == repr({"a": expected})
        assert read_document(f"{scalar}: a").value == {key or scalar: "a"}
        assert read_document(f"'{scalar}': '{scalar}'").value == {scalar: scalar}


@pytest.mark.parametrize(
    "text", ["yes", "n", "0o17", "0O7", "08", "2.4e1", "1_e3", "1e3", "1", "", " x ", "é", "a: b", "- x"]
)
def test_what_is_written_is_read_back(text: str) -> None:
    value = {text: [{"a": None, "b": [1, 2.5, True, text]}, []], "d": {}}
    assert read_document(as_yaml(value)).value == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[" * 201, "line 1, column 201: it is nested too deeply: more than 200 levels"),
        ("- " * 201, "line 1, column 401: it is nested too deeply: more than 200 levels"),
        ("a:\n  b: !!bool foo", "line 2, column 6: the value is no bool"),
        ("a: !!int foo", "line 1, column 4: the value is no int"),
        ("a: !!timestamp 2020-99-99", "line 1, column 4: the tag !!timestamp is not supported"),
        ("a: !!set {b}", "line 1, column 4: the tag !!set is not supported"),
        ("a: !s3cr3t b", "line 1, column 4: the tag is not supported"),
        ("a: .inf", "line 1, column 4: the value is no number that JSON has"),
        ("a: .NaN", "line 1, column 4: the value is no number that JSON has"),
        ("a: &a [*a]", "line 1, column 8: an alias names a value that it is a part of"),
        ("a: &a\n  <<: *a", "line 2, column 7: an alias names a value that it is a part of"),
        ("a: *b", "line 1, column 4: an alias names no anchor before it"),
        ("a: 1\n~: b", "line 2, column 1: a key must be text"),
        ("? [a]\n: b", "line 1, column 3: a key must be text"),
        ("a: &a [b]\n*a : c", "line 2, column 1: a key must be text"),
        ("<<: 3", "line 1, column 5: a merge key (<<) needs an object or a list of objects"),
        ("a: 1\n---\nb: 2", "line 2, column 1: expected a single document"),
        ("x\na: b\0", "line 2, column 5: the character #x0000 is not permitted"),
        ("a: \ud800", "line 1, column 4: the character #xd800 is not permitted"),
        ("a: b: c", "line 1, column 5: mapping values are not allowed in this context"),
        ("a: {b", "line 1, column 6: while parsing a flow mapping, did not find expected '...'"),
    ],
)  # fmt: skip
def test_a_text_that_is_not_accepted_is_an_error_with_line_and_column(text: str, expected: str) -> None:
    assert problem(text) == expected


def test_lines_are_those_of_the_file() -> None:
    assert problem("a: *b", lines_before=10).startswith("line 11, column 4: ")
    assert problem("a: [", lines_before=10).startswith("line 11, column 5: ")
    assert problem("\na: \0", lines_before=10).startswith("line 12, column 4: ")


def test_the_deepest_permitted_document_is_read() -> None:
    assert read_document("[" * MAX_DEPTH + "]" * MAX_DEPTH).value is not None


def test_aliases_are_counted_before_they_stand_for_too_much() -> None:
    laughs = "\n".join(
        ["a0: &a0 [x]", *(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10))]
    )
    assert problem(laughs).endswith(f"the aliases stand for more than {MAX_REPEATED:,} characters")
    merged = "a0: &a0 {k: v}\n" + "\n".join(
        f"a{n}: &a{n} {{<<: [{','.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 10)
    )
    assert problem(merged).endswith("characters")
    long_text = f"- &a {'x' * 100_000}\n" + "- *a\n" * 20
    assert problem(long_text).startswith("line 11, column 3: ")
    assert read_document("a: &a {b: [c]}\n" + "\n".join(f"d{n}: *a" for n in range(1000))).value


def test_a_small_hostile_document_costs_little_memory() -> None:
    values, selectors, targets = 900, 550, 550
    text = (
        f"x: &v [{'x,' * values}]\ny: &m {{key: a, operator: In, values: *v}}\nz: &e [{'*m,' * selectors}]\n"
        f"w: &t {{matchExpressions: *e}}\nspec: [{'*t,' * targets}]"
    )
    tracemalloc.start()
    try:
        problem(text)
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    finally:
        tracemalloc.stop()


def test_keys_that_an_object_has_twice_are_named_and_the_later_counts() -> None:
    found = read_document("a: 1\nb:\n  c: 1\n  c: 2\na: 3", lines_before=10)
    assert found.value == {"a": 3, "b": {"c": 2}}
    assert [(each.key, each.line, each.before) for each in found.repeated] == [("c", 14, 13), ("a", 15, 11)]
