"""The objects of the measurement of the page."""

import random

import orjson

from karmada_scheduler.api.binding import Binding
from tools.bench import web


def test_bindings_have_the_size_of_real_ones_and_most_are_placed() -> None:
    dice = random.Random(1)
    made = [web.placed(index, ["m1", "m2", "m3"], dice) for index in range(20)]
    assert all(web.BYTES <= len(orjson.dumps(each)) < 1.02 * web.BYTES for each in made)
    assert sum(bool(Binding.from_manifest(each).spec.clusters) for each in made) == 19
