"""Makes one situation, asks about it, judges the answers, and applies the first remedy."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import requests

from tools.controlplane import ApiError, Object, WaitTimeoutError
from tools.controlplane.api import local_session
from tools.state_check import applying
from tools.state_check.asking import Ask, ask, fields_of
from tools.state_check.judge import judged, judged_also, remedy_text
from tools.state_check.model import HEALTHY, Also, Answer, Outcome, Result, Situation
from tools.state_check.plane import READS, Plane
from tools.state_check.scene import Scene

_WIDE = "--width=2000"
_PAGE_SECONDS = 60  # as the others, for a busy machine
_SEARCH = "--timeout=10s"
_ERRORS = (WaitTimeoutError, ApiError, requests.RequestException, KeyError, AssertionError)


class Check:
    """Checks situations in one plane."""

    def __init__(self, plane: Plane, *, all_remedies: bool = False, ask: Ask = ask) -> None:
        """Take the plane.

        Args:
            plane: Control plane, schedulers and users.
            all_remedies: Whether the situation is made again for each further remedy, to apply it.
            ask: Runs a command.
        """
        self._plane = plane
        self._ask = ask
        self._all_remedies = all_remedies

    def check(self, situation: Situation) -> Outcome:
        """Check one situation. A situation that cannot be made is wrong in its first aspect."""
        started = time.monotonic()
        scene = Scene(self._plane, self._plane.next_namespace())
        scene.open(situation.labels)
        try:
            situation.make(scene)
        except _ERRORS as error:
            problem = f"cannot be made: {str(error)[:1500]}"
            return Outcome(situation, [Result("headline", problem)], [], time.monotonic() - started)
        answers: list[Answer] = []
        results = list(self._judged(situation, scene, answers))
        return Outcome(situation, results, answers, time.monotonic() - started)

    def _judged(self, situation: Situation, scene: Scene, answers: list[Answer]) -> Iterator[Result]:
        config = self._user(situation, scene)

        def explain(*flags: str) -> Answer:
            written = [_filled(flag, scene, self._plane) for flag in situation.flags]
            name = _filled(situation.ask, scene, self._plane)
            answer = self._ask(config, scene.namespace, "explain", name, *written, *flags)
            answers.append(answer)
            return answer

        text = explain(_WIDE, "--no-remedies")
        quiet = explain(_WIDE, "-q") if situation.expected.quiet else None
        clusters = applying.fleet(self._plane.karmada)
        found = explain("-o", "json", _SEARCH)
        fields = fields_of(found)
        binding = self._plane.karmada.client.find(scene.path(scene.notes["binding"])) or {}
        stored = (binding.get("spec") or {}).get("clusters") or []
        expected = situation.expected
        yield from judged(expected, text, quiet, found, fields, stored)
        wrong = [each for also in situation.also for each in self._asked_also(also, scene, config, answers)]
        if situation.also:
            yield Result("also", "; ".join(wrong))
        if situation.page and self._plane.page:
            yield Result("page", "; ".join(self._page(situation, scene)))
        remedies = fields.get("remedies") or ()
        if situation.applies and expected.remedy and remedies:
            problems = list(self._applied(scene, remedies[0], explain, situation.after, clusters))
            for number in range(1, len(remedies) if self._all_remedies else 1):
                try:
                    problems += self._applied_again(situation, number)
                except _ERRORS as error:
                    problems.append(f"remedy {number + 1}: the situation cannot be made again: {error}")
            if problems:
                yield Result("applied", "; ".join(filter(None, problems)))

    def _user(self, situation: Situation, scene: Scene) -> Path:
        if not situation.rights:
            return self._plane.reader
        rights = [each for each in READS if each not in situation.rights]
        return self._plane.user(f"reader-{scene.namespace}", *rights)

    def _asked_also(self, also: Also, scene: Scene, config: Path, answers: list[Answer]) -> Iterator[str]:
        def filled(written: str) -> str:
            return _filled(written, scene, self._plane)

        if also.file is not None:
            path = self._plane.files / f"{scene.namespace}.json"
            path.write_text(json.dumps(also.file(scene)))
            scene.notes["file"] = str(path)
        arguments = [filled(each) for each in also.arguments]
        namespace = "" if arguments[0] in {"plan", "rebalance"} else scene.namespace
        text = self._ask(config, namespace, *arguments, _WIDE)
        answers.append(text)
        fields = {}
        if also.fields or also.effect:
            found = self._ask(config, namespace, *arguments, "-o", "json")
            answers.append(found)
            fields = fields_of(found)
        remedies = fields.get("remedies") or ()
        if also.applies and remedies and applying.is_patch(remedies[0]):
            applying.apply(self._plane.karmada, remedies[0])
            promised = applying.promised(remedies[0])
            where = scene.path(scene.notes["binding"])
            if problem := applying.wait_placed(self._plane.karmada, where, promised):
                yield f"{text.command}: {remedy_text(remedies[0])}: {problem}"
        patterns = replace(also, line=filled(also.line), never=filled(also.never), says=filled(also.says))
        yield from judged_also(patterns, text, fields, f"{scene.namespace}/{scene.notes['binding']}")

    def _applied_again(self, situation: Situation, number: int) -> Iterator[str]:
        """Make a situation once more, and apply a further remedy."""
        scene = Scene(self._plane, self._plane.next_namespace())
        scene.open(situation.labels)
        situation.make(scene)
        flags = [_filled(flag, scene, self._plane) for flag in situation.flags]
        name = _filled(situation.ask, scene, self._plane)

        def explain(*more: str) -> Answer:
            return self._ask(self._plane.reader, scene.namespace, "explain", name, *flags, *more)

        clusters = applying.fleet(self._plane.karmada)
        remedies = fields_of(explain("-o", "json", _SEARCH)).get("remedies") or ()
        if number < len(remedies):
            after = None if remedies[number].get("result") else situation.after
            yield from self._applied(scene, remedies[number], explain, after, clusters)

    def _applied(
        self,
        scene: Scene,
        remedy: Object,
        explain: Callable[..., Answer],
        after: Mapping[str, int] | None,
        clusters: int,
    ) -> Iterator[str]:
        """Yield what is wrong once a remedy is applied, "" if nothing is; nothing at all if it is no patch."""
        if not applying.is_patch(remedy):
            return
        plane, path = self._plane.karmada, scene.path(scene.notes["binding"])
        try:
            applying.apply(plane, remedy)
        except ApiError as error:
            yield f"{remedy_text(remedy)}: {error}"
            return
        wanted = after if after is not None else applying.promised(remedy)
        problem = applying.wait_placed(plane, path, wanted, clusters)
        if not problem:
            problem = self._healthy_again(explain)
        yield f"{remedy_text(remedy)}: {problem}" if problem else ""

    def _healthy_again(self, explain: Callable[..., Answer]) -> str:
        """Return what ``explain`` still complains about after a remedy, "" if it says that all is well."""
        deadline = time.monotonic() + 20
        while True:
            answer = explain("-o", "json", "--no-remedies")
            state = fields_of(answer).get("state")
            name = state.get("name") if isinstance(state, dict) else str(state).lower()
            if answer.status == 0 and name in HEALTHY:
                return ""
            if time.monotonic() > deadline:
                return f"placed as promised, and explain says {state}"
            time.sleep(1)

    def _page(self, situation: Situation, scene: Scene) -> Iterator[str]:
        name = scene.notes["binding"]
        with local_session() as session:
            for path in (f"b/{scene.namespace}/{name}", f"bindings?namespace={scene.namespace}"):
                deadline = time.monotonic() + _PAGE_SECONDS
                while True:  # the page reads the control plane every few seconds
                    status, text = _get(session, self._plane.page + path)
                    badge = _badge(text, f"{name}</a>" if path.startswith("bindings") else "")
                    if re.search(situation.page, badge):
                        break
                    if time.monotonic() > deadline:
                        yield f"/{path}: status {status}, badge {badge!r}, expected {situation.page!r}"
                        break
                    time.sleep(1)


def _get(session: requests.Session, url: str) -> tuple[int, str]:
    """Return the status and the text of a page; 0 and the error if there was no answer."""
    try:
        answer = session.get(url, timeout=60)
    except requests.RequestException as error:
        return 0, str(error)
    return answer.status_code, answer.text


def _badge(html: str, row: str) -> str:
    """Return the text of the first badge, or of the first one after a text of a row."""
    if row:
        html = html[html.find(row) :] if row in html else ""
    found = re.search(r'class="state\b[^"]*"[^>]*>([^<]*)<', html)
    return found.group(1).strip() if found else ""


def _filled(text: str, scene: Scene, plane: Plane) -> str:
    found = text
    for key, value in scene.notes.items():
        found = found.replace("{" + key + "}", value)
    for name, address in plane.records.items():
        found = found.replace("{from " + name + "}", address)
    return found.replace("{plugins}", str(plane.plugins))


def problems_of(outcome: Outcome) -> Sequence[str]:
    """Return what is wrong, one line per aspect."""
    return [f"{each.aspect}: {each.problem}" for each in outcome.problems]
