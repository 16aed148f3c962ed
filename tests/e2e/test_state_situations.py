"""Broken and healthy bindings, and what ``explain`` and other commands say about them: all with ``make check-state``.

Each situation is made as a user would make it, in a namespace of its own. Headline, cause, remedy, exit status and JSON are
judged apart. A remedy that is a patch is applied, and the binding has to be placed as it promises. The control plane is one of
their own, with more schedulers and members than that of the other tests.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Ran, run
from tests.e2e.state import applying
from tests.e2e.state.judge import effect_of, fields_of, judged, judged_also
from tests.e2e.state.model import HEALTHY, Also, Situation
from tests.e2e.state.plane import MINE, PLUGGED, READS, STOCK, Plane, running
from tests.e2e.state.scene import Scene
from tests.e2e.state.situations import SITUATIONS
from tests.e2e.workload import DYNAMIC, named
from tools.controlplane.api import local_session
from tools.controlplane.karmada import CLUSTERS

CHOSEN = (
    "healthy-dynamic",
    "healthy-of-the-stock-scheduler",
    "cluster-name-mistyped",
    "taint",
    "request-too-large",
    "replicas-too-many-after-placing",
    "policy-name-mistyped",
    "policies-in-order",
    "claim-held",
    "policy-lazy",
    "policy-deleted",
    "dependency",
    "api-list-incomplete",
    "request-larger-than-a-node",
    "components-with-the-gate",
    "peer-there-and-the-process",
    "quota-refuses",
    "scheduling-suspended-in-part",
    "guard-budget",
    "moving",
    "plugin-of-the-process-refuses",
    "dispatching-suspended",
    "admission-refuses",
    "object-exists-there",
    "override-breaks-the-image",
    "cluster-not-ready",
    "scheduler-name-mistyped",
    "scheduler-killed-then-scaled",
    "without-the-right-to-read-leases-broken",
)
"""The situations that are made without ``--thorough``; with it, all are, and every remedy is applied."""
_WIDE = "--width=2000"
_SEARCH = "--timeout=10s"
_PAGE_SECONDS = 60  # as the others, for a busy machine


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each situation; those that disturb others come last."""
    if "situation" not in metafunc.fixturenames:
        return
    found = [each for each in SITUATIONS if metafunc.config.getoption("--thorough") or each.name in CHOSEN]
    found.sort(key=lambda situation: situation.alone)
    metafunc.parametrize("situation", found, ids=[situation.name for situation in found])


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with running(tmp_path_factory.mktemp("state")) as plane:
        yield plane


def test_a_loss_is_judged_by_the_rules_of_each_scheduler_and_goes_as_predicted(plane: Plane) -> None:
    """Three schedulers decide on one control plane; the commands do not know the plugin of one of them.

    It comes before the situations, of which some end a scheduler.
    """
    scene = Scene(plane, plane.next_namespace())
    scene.open({})
    lost, other = scene.cluster(), scene.cluster()
    for name, scheduler in (("stock", STOCK), ("mine", MINE), ("south", PLUGGED)):
        scene.policy(
            named(lost, other, replicaScheduling=DYNAMIC),
            name=name,
            selector={"name": name},
            scheduler=scheduler,
        )
        scene.deployment(name=name)
    for name in ("stock", "mine", "south"):
        scene.wait_placed({lost: 2, other: 2}, name=f"{name}-deployment")

    def ask(*words: str) -> Any:
        return fields_of(run(*words, f"--kubeconfig={plane.reader}", "-o=json", "--fail-on=none"))

    def effects(plan: Any) -> dict[str, str]:
        return {name: effect_of(plan, f"{scene.namespace}/{name}-deployment") for name in expected}

    expected = {"stock": "moved", "mine": "moved", "south": "not-judged"}
    planned = ask("plan", f"--without={lost}")
    survived = {
        binding["name"]: {(loss["effect"], loss["dark"]) for loss in binding["losses"]}
        for binding in ask("survive", lost)["bindings"]
        if binding["namespace"] == scene.namespace
    }
    assert effects(planned) == expected
    then = {binding["name"]: binding["after"] for binding in planned["bindings"]}
    assert [then[f"{name}-deployment"] for name in ("stock", "mine")] == [
        [{"name": other, "replicas": 4}]
    ] * 2
    assert survived["south-deployment"] == {("not-judged", False)}
    assert not any(dark for losses in survived.values() for _, dark in losses)
    with local_session() as session:
        url = f"{plane.page}v1/plan?without={lost}"
        _wait(
            lambda: effects(session.get(url, timeout=60).json()),
            lambda found: found == expected,
            _PAGE_SECONDS,
        )
    plane.karmada.client.delete(f"{CLUSTERS}/{lost}")
    for name in ("stock", "mine"):
        scene.wait_placed({other: 4}, name=f"{name}-deployment")


def test_headline_cause_remedy_exit_status_and_json_tell_what_is_true(
    plane: Plane, situation: Situation, subtests: pytest.Subtests, request: pytest.FixtureRequest
) -> None:
    made, expected = Made(plane, situation), situation.expected
    text = made.explain(_WIDE, "--no-remedies")
    quiet = made.explain(_WIDE, "-q") if expected.quiet else None
    clusters = applying.fleet(plane.karmada)
    found = made.explain("-o", "json", _SEARCH)
    for aspect, problems in judged(expected, text, quiet, found, made.stored):
        with subtests.test(aspect):
            assert not problems
    for also in situation.also:
        with subtests.test(" ".join(also.arguments)):
            assert not list(made.ask_also(also))
    if situation.page:
        with subtests.test("page"):
            made.see_page()
    remedies = fields_of(found).get("remedies") or ()
    if not (situation.applies and expected.remedy and remedies):
        return
    with subtests.test("remedy 1 is applied"):
        made.apply(remedies[0], clusters, situation.after)
    for number in range(1, len(remedies) if request.config.getoption("--thorough") else 1):
        with subtests.test(f"remedy {number + 1} is applied"):
            again, clusters = Made(plane, situation), applying.fleet(plane.karmada)
            remedies = fields_of(again.explain("-o", "json", _SEARCH)).get("remedies") or ()
            for remedy in remedies[number : number + 1]:
                again.apply(remedy, clusters, None if remedy.get("result") else situation.after)


class Made:
    """A situation that was made."""

    def __init__(self, plane: Plane, situation: Situation) -> None:
        self._plane, self._situation = plane, situation
        self._scene = Scene(plane, plane.next_namespace())
        self._scene.open(situation.labels)
        situation.make(self._scene)
        self._kubeconfig = self._user()

    @property
    def stored(self) -> list[Any]:
        """The clusters with replicas of the binding, and those on which others require it, as the API server has them."""
        found = self._plane.karmada.client.find(self._path) or {}
        spec = found.get("spec") or {}
        required = [cluster for entry in spec.get("requiredBy") or () for cluster in entry["clusters"]]
        return [
            *(spec.get("clusters") or ()),
            *({"name": cluster["name"], "replicas": 0} for cluster in required),
        ]

    def explain(self, *flags: str) -> Ran:
        """Run ``explain`` about the situation."""
        words = [self._filled(word) for word in (self._situation.ask, *self._situation.flags)]
        return self._ask("explain", *words, *flags, "-n", self._scene.namespace)

    def ask_also(self, also: Also) -> Iterator[str]:
        """Yield what another command says that is not true."""
        if also.file is not None:
            path = self._plane.files / f"{self._scene.namespace}.json"
            path.write_text(json.dumps(also.file(self._scene)))
            self._scene.notes["file"] = str(path)
        words = [self._filled(word) for word in also.arguments]
        if words[0] not in {"plan", "rebalance"}:
            words += ["-n", self._scene.namespace]
        text = self._ask(*words, _WIDE)
        fields = fields_of(self._ask(*words, "-o", "json")) if also.fields or also.effect else {}
        line, never, says = map(self._filled, (also.line, also.never, also.says))
        patterns = replace(also, line=line, never=never, says=says)
        yield from judged_also(
            patterns, text, fields, f"{self._scene.namespace}/{self._scene.notes['binding']}"
        )
        remedies = fields.get("remedies") or ()
        if also.applies and remedies and applying.is_patch(remedies[0]):
            applying.apply(self._plane.karmada, remedies[0])
            yield from filter(
                None,
                [applying.wait_placed(self._plane.karmada, self._path, applying.promised(remedies[0]))],
            )

    def see_page(self) -> None:
        """Wait until the page of the binding and its row in the list have the expected badge."""
        space, name = self._scene.namespace, self._scene.notes["binding"]
        with local_session() as session:

            def badge(path: str, row: str) -> str:
                html = session.get(self._plane.page + path, timeout=60).text
                found = re.search(r'class="state\b[^"]*"[^>]*>([^<]*)<', html.partition(row)[2])
                return found.group(1).strip() if found else ""

            for path, row in ((f"b/{space}/{name}", "<body"), (f"bindings?namespace={space}", f"{name}</a>")):
                _wait(
                    lambda path=path, row=row: badge(path, row),  # type: ignore[misc]
                    lambda found: re.search(self._situation.page, found),
                    _PAGE_SECONDS,
                )

    def apply(self, remedy: Mapping[str, Any], clusters: int, after: Mapping[str, int] | None) -> None:
        """Apply a remedy that is a patch; the binding is placed as promised, and ``explain`` says that all is well.

        Args:
            remedy: The remedy.
            clusters: The fleet that it was computed for.
            after: Replicas by cluster; None for what the remedy promises.
        """
        if not applying.is_patch(remedy):
            return
        karmada = self._plane.karmada
        applying.apply(karmada, remedy)
        wanted = after if after is not None else applying.promised(remedy)
        assert not applying.wait_placed(karmada, self._path, wanted, clusters)

        def state() -> tuple[int, Any]:
            answer = self.explain("-o", "json", "--no-remedies")
            found = fields_of(answer).get("state")
            return answer.status, found.get("name") if isinstance(found, dict) else str(found).lower()

        _wait(state, lambda found: found[0] == 0 and found[1] in HEALTHY, 20)

    @property
    def _path(self) -> str:
        return self._scene.path(self._scene.notes["binding"])

    def _user(self) -> Path:
        """Return the kubeconfig of who asks."""
        if not self._situation.rights:
            return self._plane.reader
        rights = [right for right in READS if right not in self._situation.rights]
        return self._plane.user(f"reader-{self._scene.namespace}", *rights)

    def _ask(self, *words: str) -> Ran:
        return run(*words, f"--kubeconfig={self._kubeconfig}")

    def _filled(self, text: str) -> str:
        """Replace the names in braces."""
        for key, value in self._scene.notes.items():
            text = text.replace("{" + key + "}", value)
        for name, address in self._plane.records.items():
            text = text.replace("{from " + name + "}", address)
        return text.replace("{plugins}", str(self._plane.plugins))


def _wait(look: Callable[[], Any], is_good: Callable[[Any], object], seconds: float) -> None:
    """Look once per second until what is seen is good; fail with what was seen last."""
    deadline = time.monotonic() + seconds
    while not is_good(found := look()):
        assert time.monotonic() < deadline, found
        time.sleep(1)
