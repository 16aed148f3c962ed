"""Random sets of templates and policies, and changes of them. A case lives in a namespace of its own."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

from tests.checks.claims.policies import PolicyGenerator
from tests.checks.claims.templates import TemplateGenerator
from tools.manifests import Manifest


class Move(NamedTuple):
    """One request, or several for templates that do not depend on each other.

    Attributes:
        verb: ``create``, ``edit`` or ``delete``.
        objects: What is written; of a deletion, the objects as they are.
    """

    verb: str
    objects: tuple[Manifest, ...]


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        number: With the seed it determines the case.
        setup: Moves of the first step, one after the other.
        change: Moves of the second step.
        at_once: Whether the moves of the second step follow each other without waiting for the detector.
    """

    number: int
    setup: tuple[Move, ...]
    change: tuple[Move, ...]
    at_once: bool

    @property
    def namespace(self) -> str:
        """The namespace of its templates and PropagationPolicies, and the prefix of cluster-scoped names."""
        return f"case-{self.number}"


@dataclass
class _Objects:
    """The objects of a case at one moment of it."""

    templates: dict[str, Manifest]
    policies: dict[str, Manifest]


class CaseGenerator:
    """Draws the parts of one case."""

    def __init__(self, seed: int, number: int) -> None:
        self._random = random.Random(f"{seed}:{number}")
        self._number = number
        self._templates = TemplateGenerator(self._random, number)
        self._policies = PolicyGenerator(self._random, number)

    def case(self) -> Case:
        """Draw the case."""
        choices = self._random
        templates = [self._templates.template(index) for index in range(choices.randint(3, 7))]
        policies = [self._policies.policy(index, templates) for index in range(choices.randint(1, 5))]
        present = _Objects(
            {_name(each): each for each in templates}, {_name(each): each for each in policies}
        )
        creations = [Move("create", (each,)) for each in policies]
        creations.insert(choices.randint(0, len(creations)), Move("create", tuple(templates)))
        moves: list[Move] = []
        names: set[str] = set()
        for _ in range(choices.randint(1, 4)):
            move = self._move(present, names)
            if move is not None:
                moves.append(move)
                names.update(map(_name, move.objects))
        return Case(self._number, tuple(creations), tuple(moves), at_once=choices.random() < 0.3)

    def _move(self, present: _Objects, moved: set[str]) -> Move | None:
        choices = self._random
        draw = choices.random()
        policies = [each for name, each in present.policies.items() if name not in moved]
        templates = [each for name, each in present.templates.items() if name not in moved]
        if draw < 0.2:
            policy = self._policies.policy(10 + len(moved), list(present.templates.values()))
            present.policies[_name(policy)] = policy
            return Move("create", (policy,))
        if draw < 0.45 and policies:
            policy = choices.choice(policies)
            del present.policies[_name(policy)]
            return Move("delete", (policy,))
        if draw < 0.85 and policies:
            policy = self._policies.edited(choices.choice(policies), list(present.templates.values()))
            present.policies[_name(policy)] = policy
            return Move("edit", (policy,))
        if templates:
            template = self._templates.edited(choices.choice(templates))
            present.templates[_name(template)] = template
            return Move("edit", (template,))
        return None


def _name(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{manifest['kind']}/{metadata.get('namespace', '')}/{metadata['name']}"
