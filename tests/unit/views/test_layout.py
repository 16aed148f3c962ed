"""Aligned tables, folded lists, and colours."""

import pytest

from karmada_advisor.views.layout import Style, folded_to, table

NARROW = Style(width=40)


def test_a_long_list_is_folded_with_the_number_of_the_others() -> None:
    names = [f"c{index}" for index in range(5000)]
    assert Style().fold(names) == "c0, c1, c2, c3, c4 and 4,995 more"
    assert Style(unfolded=True).fold(names).endswith("c4999")


def test_one_name_more_than_the_limit_is_not_worth_folding() -> None:
    assert Style().fold(["a", "b", "c", "d", "e", "f"]) == "a, b, c, d, e, f"


def test_as_many_names_are_shown_as_fit() -> None:
    names = ["ap-south-1", "eu-north-1", "eu-west-1", "eu-west-2"]
    assert folded_to(names, 40, NARROW) == "ap-south-1, eu-north-1 and 2 more"


def test_optional_columns_go_first_where_a_table_is_too_wide() -> None:
    row = ("eu-west-1", "x" * 20, "y" * 9)
    heading = ("CLUSTER", "LIMITED BY", "REASON")
    assert "LIMITED BY" in table(heading, [row], Style(width=60))[0]
    assert "LIMITED BY" not in table(heading, [row], Style(width=35), optional=(1,))[0]


def test_the_last_column_is_wrapped_below_itself() -> None:
    lines = table(("NAME", "WHY"), [("a", "one two three four five six seven eight nine")], NARROW)
    assert lines == ["NAME  WHY", "a     one two three four five six seven", "      eight nine"]


def test_a_cell_may_cover_empty_cells_to_its_right() -> None:
    rows = [("yes", "12"), ("no: lost a tie", "")]
    assert table(("SELECTED", "REPLICAS"), rows, NARROW, align=" >", spilling=0) == [
        "SELECTED  REPLICAS",
        "yes             12",
        "no: lost a tie",
    ]


@pytest.mark.parametrize(("colour", "expected"), [(False, "PLACED"), (True, "\x1b[32mPLACED\x1b[0m")])
def test_colours_are_written_on_demand(colour: bool, expected: str) -> None:
    assert Style(colour=colour).paint("PLACED", "green") == expected
