"""Aligned tables, folded lists, and colours."""

import re

import pytest

from karmada_advisor.views.document import Line, Table, TextBlock, Written
from karmada_advisor.views.text import Style, lines, text, unbroken

NARROW = Style(width=40)


def written(*blocks: TextBlock, style: Style = NARROW) -> list[str]:
    return [*lines(blocks, style)]


def test_a_long_list_is_folded_with_the_number_of_the_others() -> None:
    names = [f"c{index}" for index in range(5000)]
    assert Style().fold(names) == "c0, c1, c2, c3, c4 and 4,995 more"
    assert Style(unfolded=True).fold(names).endswith("c4999")


def test_one_name_more_than_the_limit_is_not_worth_folding() -> None:
    assert Style().fold(["a", "b", "c", "d", "e", "f"]) == "a, b, c, d, e, f"


def test_as_many_names_are_shown_as_fit() -> None:
    names = ["ap-south-1", "eu-north-1", "eu-west-1", "eu-west-2"]
    assert NARROW.fold_to(names, 40) == "ap-south-1, eu-north-1 and 2 more"


def test_optional_columns_go_first_where_a_table_is_too_wide() -> None:
    row = ("eu-west-1", "x" * 20, "y" * 9)
    heading = ("CLUSTER", "LIMITED BY", "REASON")
    assert "LIMITED BY" in written(Table(heading, [row]), style=Style(width=60))[0]
    assert "LIMITED BY" not in written(Table(heading, [row], optional=(1,)), style=Style(width=35))[0]


def test_the_last_column_is_wrapped_below_itself() -> None:
    found = Table(("NAME", "WHY"), [("a", "one two three four five six seven eight nine")])
    assert written(found) == ["NAME  WHY", "a     one two three four five six seven", "      eight nine"]


def test_a_cell_may_cover_empty_cells_to_its_right() -> None:
    rows = [("yes", "12"), ("no: lost a tie", "")]
    assert written(Table(("SELECTED", "REPLICAS"), rows, " >", spilling=0)) == [
        "SELECTED  REPLICAS",
        "yes             12",
        "no: lost a tie",
    ]


@pytest.mark.parametrize(("colour", "expected"), [(False, "PLACED"), (True, "\x1b[32mPLACED\x1b[0m")])
def test_colours_are_written_on_demand(colour: bool, expected: str) -> None:
    assert Style(colour=colour).paint("PLACED", "green") == expected


def test_a_sentence_hangs_below_its_beginning_and_deeper_after_a_mark() -> None:
    words = "one two three four five six seven eight nine"
    assert written(f"  {words}") == ["  one two three four five six seven", "    eight nine"]
    assert written(f"! {words}") == ["! one two three four five six seven", "    eight nine"]
    assert written(Line(words, hang=0)) == ["one two three four five six seven eight", "nine"]
    assert written(Line(words, breaks=False)) == [words]


@pytest.mark.parametrize("width", [40, 60])
def test_lines_are_wrapped_alike_with_colours_and_without(width: int) -> None:
    words = "one two three four five six seven eight nine ten eleven twelve"
    painted = [("! warning:", "yellow"), (f" {words}", "")]
    plain = written(Line(painted), Line(words, "red"), style=Style(width))
    coloured = written(Line(painted), Line(words, "red"), style=Style(width, colour=True))
    assert coloured[0].startswith("\x1b[33m! warning:\x1b[0m one")
    assert [re.sub(r"\x1b\[\d+m", "", line) for line in coloured] == plain


def test_a_line_of_parts_is_wrapped_between_them() -> None:
    parts = ["shop/checkout", "4 replicas of cpu 500m", "policy checkout"]
    assert written(unbroken(parts)) == ["shop/checkout   4 replicas of cpu 500m", "  policy checkout"]


def test_sections_have_a_blank_line_between_them_and_empty_ones_leave_none() -> None:
    assert text([["a", "b"], [], iter(()), [Table((), [])], ["c"]], NARROW) == "a\nb\n\nc\n"


def test_a_part_that_is_written_already_is_indented() -> None:
    assert written(Written(["a", ""], 4)) == ["    a", ""]
