"""Webster's method: quotients, ties, and few seats among many parties."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from karmada_scheduler.core.algorithms import webster

EVEN_UID = "4858ca61-3ff8-4095-8267-f3d059d8074c"
ODD_UID = "d43fdeeb-d750-4e2b-bee3-64eb94534f4c"


@pytest.mark.parametrize(
    ("seats", "expected"),
    list(
        enumerate(
            [
                {"A": 1, "B": 0, "C": 0, "D": 0},
                {"A": 1, "B": 1, "C": 0, "D": 0},
                {"A": 2, "B": 1, "C": 0, "D": 0},
                {"A": 2, "B": 1, "C": 1, "D": 0},
                {"A": 2, "B": 2, "C": 1, "D": 0},
                {"A": 2, "B": 2, "C": 1, "D": 1},
                {"A": 3, "B": 2, "C": 1, "D": 1},
                {"A": 3, "B": 3, "C": 1, "D": 1},
            ],
            start=1,
        )
    ),
)
def test_seats_go_one_by_one_to_the_highest_quotient(seats: int, expected: dict[str, int]) -> None:
    assert webster.allocate(seats, {"A": 100_000, "B": 80_000, "C": 30_000, "D": 20_000}) == expected


@pytest.mark.parametrize(
    ("seats", "votes", "held", "expected"),
    [
        pytest.param(
            4, {"A": 1200, "B": 900, "C": 400}, {}, {"A": 2, "B": 1, "C": 1}, id="remainder-to-the-small"
        ),
        pytest.param(5, {}, {}, {}, id="no-parties"),
        pytest.param(0, {"A": 100, "B": 200}, {}, {"A": 0, "B": 0}, id="no-seats"),
        pytest.param(1, {"A": 3, "B": 1}, {"A": 1}, {"A": 1, "B": 1}, id="equal-quotients-go-to-fewer-seats"),
        pytest.param(1, {"A": 1, "B": 1}, {}, {"A": 1, "B": 0}, id="then-to-the-first-name"),
        pytest.param(
            2, {"New1": 1, "New2": 1}, {"Old": 0}, {"New1": 1, "New2": 1, "Old": 0}, id="no-votes-no-seats"
        ),
        pytest.param(
            2, {"Old": 1, "New": 1}, {"Old": 1}, {"New": 2, "Old": 1}, id="held-seats-lower-the-quotient"
        ),
        pytest.param(2, {"A": 100}, {"B": 3}, {"A": 2, "B": 3}, id="held-seats-stay"),
        *(
            pytest.param(
                seats,
                {"A": 1, "B": 2, "C": 3},
                {"A": 1, "B": 2, "C": 3},
                dict(zip("ABC", expected, strict=True)),
                id=f"{seats}-more-on-1:2:3",
            )
            for seats, expected in ((6, (2, 4, 6)), (3, (2, 3, 4)), (2, (1, 3, 4)))
        ),
        *(
            pytest.param(
                seats, {"A": 2, "B": 1}, {}, dict(zip("AB", expected, strict=True)), id=f"{seats}-at-2:1"
            )
            for seats, expected in ((1, (1, 0)), (2, (1, 1)), (3, (2, 1)))
        ),
        pytest.param(5, {"A": 170, "B": 110, "C": 60}, {}, {"A": 2, "B": 2, "C": 1}, id="5-at-170:110:60"),
        pytest.param(6, {"A": 170, "B": 110, "C": 60}, {}, {"A": 3, "B": 2, "C": 1}, id="6-at-170:110:60"),
        pytest.param(10, {"A": 5}, {}, {"A": 10}, id="all-to-the-only-one"),
        pytest.param(12, {"A": 5, "B": 5, "C": 5}, {}, {"A": 4, "B": 4, "C": 4}, id="even"),
        pytest.param(10, {"A": 5, "B": 5, "C": 5}, {}, {"A": 4, "B": 3, "C": 3}, id="uneven"),
        pytest.param(13, {"A": 1, "B": 2, "C": 3}, {}, {"A": 2, "B": 4, "C": 7}, id="at-1:2:3"),
        pytest.param(7, {"A": 0, "B": 5}, {}, {"A": 0, "B": 7}, id="no-vote-no-seat"),
        pytest.param(3, {"A": 0, "B": 0}, {}, {"A": 2, "B": 1}, id="no-votes"),
    ],
)
def test_seats_are_proportional_to_votes(
    seats: int, votes: dict[str, int], held: dict[str, int], expected: dict[str, int]
) -> None:
    given = webster.allocate(seats, votes, held=held)
    assert given == expected
    assert list(given) == sorted(given)


@pytest.mark.parametrize(("descending", "winner"), [(False, "A"), (True, "B")])
def test_a_tie_is_broken_by_name_in_either_direction(descending: bool, winner: str) -> None:
    given = webster.allocate(1, {"A": 1, "B": 1}, descending_names=descending)
    assert given[winner] == 1


@pytest.mark.parametrize(
    ("uid", "descending", "seats"),
    [
        pytest.param("", False, {"A": 3, "B": 2}, id="no-uid"),
        pytest.param(EVEN_UID, False, {"A": 3, "B": 2}, id="even"),
        pytest.param(ODD_UID, True, {"A": 2, "B": 3}, id="odd"),
    ],
)
def test_the_uid_decides_the_direction(uid: str, descending: bool, seats: dict[str, int]) -> None:
    assert webster.prefers_descending_names(uid) is descending
    assert webster.allocate(5, {"A": 1, "B": 1}, descending_names=descending) == seats


def test_the_parity_is_that_of_the_fnv_hash() -> None:
    random_ = random.Random(7)
    for _ in range(500):
        uid = "".join(random_.choices("0123456789abcdef-", k=random_.randint(1, 36)))
        hash_ = 2166136261
        for byte in uid.encode():
            hash_ = (hash_ ^ byte) * 16777619 % 2**32
        assert webster.prefers_descending_names(uid) is bool(hash_ % 2)


def one_by_one(seats: int, votes: dict[str, int], *, descending_names: bool) -> dict[str, int]:
    """The definition: no start, no heap, exact fractions."""
    given = dict.fromkeys(sorted(votes), 0)
    for _ in range(seats):
        ordered = sorted(given, reverse=descending_names)
        winner = min(ordered, key=lambda name: (-Fraction(votes[name], 2 * given[name] + 1), given[name]))
        given[winner] += 1
    return given


def test_certain_seats_are_never_too_many() -> None:
    random_ = random.Random(11)
    for _ in range(1500):
        count = random_.randint(1, 9)
        highest = random_.choice([1, 3, 100])
        votes = {f"m{i}": random_.randint(0, highest) for i in range(count)}
        if not any(votes.values()):
            continue
        seats, descending = random_.randint(0, 60), random_.random() < 0.5
        given = webster.allocate(seats, votes, descending_names=descending)
        assert given == one_by_one(seats, votes, descending_names=descending), (seats, votes, descending)


def test_parties_with_negative_votes_get_no_seat() -> None:
    assert webster.allocate(2_000_000_000, {"a": -5, "b": 7, "c": 0}) == {"a": 0, "b": 2_000_000_000, "c": 0}
