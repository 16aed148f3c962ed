"""The objects of the large installation."""

import json

from tools.bench import recorded_fleet, recording
from tools.bench.recording import Sizes

SIZES = Sizes(bindings=1_200, clusters=20)


def test_an_object_is_as_large_as_a_real_one() -> None:
    found = [
        len(json.dumps(each, separators=(",", ":")))
        for each in recorded_fleet.bindings("ResourceBinding", SIZES)
    ]
    assert 3_400 < sum(found) / len(found) < 6_500
    assert len(found) == 1_176
    assert sum(map(recording.is_new, range(SIZES.bindings))) == SIZES.new == 12
