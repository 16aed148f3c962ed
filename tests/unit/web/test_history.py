"""What has happened to a binding: conditions and Events, the newest first, for those who may see them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from karmada_advisor.web.history import MOST, history_of
from karmada_advisor.web.viewer import LIST_EVENTS, Viewer
from karmada_scheduler.api_error import ApiError
from tests.unit.web.site import Site
from tests.unit.web.test_viewer import DEVELOPER, bindings, clusters, with_permission

Object = dict[str, Any]
UIDS: Final = ("of-the-binding", "of-the-template")


WITH_EVENTS: Final = with_permission(DEVELOPER, LIST_EVENTS)


def event(uid: str, reason: str, at: str, **more: Any) -> Object:
    return {
        "involvedObject": {"uid": uid, "kind": "ResourceBinding"},
        "reason": reason,
        "message": f"{reason} <b>",
        "lastTimestamp": at,
        "type": "Normal",
        **more,
    }


class Events:
    """The API server with Events of two objects."""

    def __init__(self, found: Sequence[Object] = (), *, problem: str = "") -> None:
        self._found = found
        self._problem = problem
        self.paths: list[str] = []

    async def request(self, method: str, path: str, *, body: Any = None, timeout: float) -> dict[str, Any]:
        assert method == "GET"
        assert timeout <= 1
        if self._problem:
            raise ApiError(self._problem)
        self.paths.append(urlsplit(path).path)
        [selector] = parse_qs(urlsplit(path).query)["fieldSelector"]
        uid = selector.removeprefix("involvedObject.uid=")
        return {"items": [each for each in self._found if each["involvedObject"]["uid"] == uid]}


MOMENT: Final = "2026-11-27T10:00:00Z"
FOUND: Final = (
    event(UIDS[0], "ScheduleBindingSucceed", "2026-11-27T10:00:00Z", count=3),
    event(UIDS[1], "ApplyPolicyFailed", "", type="Warning", eventTime="2026-11-27T11:00:00.123456Z"),
    event("of-another", "Foreign", "2026-11-27T12:00:00Z"),
)


def site(folder: Path, viewer: Viewer, events: Events) -> Site:
    made = bindings()
    manifest = made[0].manifest()
    manifest["metadata"]["uid"], manifest["spec"]["resource"]["uid"] = UIDS
    manifest["status"]["conditions"][0]["lastTransitionTime"] = "2026-11-27T09:00:00Z"
    return Site(folder, clusters=clusters(), bindings=made, viewer=viewer, connection=events)


async def test_events_of_the_binding_and_its_template_are_between_the_conditions_by_time(
    tmp_path: Path,
) -> None:
    events = Events(FOUND)
    async with site(tmp_path, WITH_EVENTS, events) as shown:
        fields = (await shown.get("/v1/history/shop/web-deployment")).fields
        page = await shown.get("/b/shop/web-deployment")

    assert [(each["reason"], each["at"], each["count"], each["isBad"]) for each in fields["entries"]] == [
        ("ApplyPolicyFailed", "2026-11-27T11:00:00Z", 1, True),
        ("ScheduleBindingSucceed", "2026-11-27T10:00:00Z", 3, False),
        ("Success", "2026-11-27T09:00:00Z", 1, False),
    ]
    assert set(events.paths) == {"/api/v1/namespaces/shop/events"}
    assert "ScheduleBindingSucceed &lt;b&gt;" in page.text
    assert "3 times" in page.page.text


async def test_who_may_not_list_events_sees_conditions_and_no_event_is_asked_for(tmp_path: Path) -> None:
    events = Events(FOUND)
    async with site(tmp_path, DEVELOPER, events) as shown:
        fields = (await shown.get("/v1/history/shop/web-deployment")).fields

    assert [each["reason"] for each in fields["entries"]] == ["Success"]
    assert not fields["hasEvents"]
    assert not events.paths


async def test_events_that_cannot_be_read_leave_the_page_and_their_problem_is_for_operators(
    tmp_path: Path,
) -> None:
    async with site(tmp_path, WITH_EVENTS, Events(problem="canary is away")) as shown:
        page = await shown.get("/b/shop/web-deployment")

    assert page.status == 200
    assert "Events cannot be read at the moment" in page.page.text
    assert "canary" not in page.text


def test_what_is_no_event_and_what_has_no_time_is_left_out_and_lists_are_bounded() -> None:
    strange: list[Object] = [
        {},
        {"lastTimestamp": 7, "involvedObject": "x"},
        {"lastTimestamp": "2026", "count": -1},
    ]
    many = [event("x", "Many", f"2026-11-27T10:{number:02}:00Z") for number in range(60)]

    found = history_of({"status": {"conditions": "none"}}, [*strange, *many])

    assert len(found.entries) == MOST
    assert found.entries[0].at == "2026-11-27T10:59:00Z"
    assert [each.count for each in history_of({}, strange).entries] == [1]


def test_an_event_about_a_binding_and_about_its_template_is_one_entry() -> None:
    about = ({"kind": "ResourceBinding"}, {"kind": "Deployment"})
    twice = [event("", "ScheduleBindingFailed", MOMENT, count=18, involvedObject=found) for found in about]
    later = event("", "ScheduleBindingFailed", "2026-11-27T12:00:00Z", involvedObject=about[0])

    found = history_of({}, [*twice, later]).entries

    assert [(entry.at[11:13], entry.of, entry.count) for entry in found] == [
        ("12", "ResourceBinding", 1),
        ("10", "ResourceBinding and Deployment", 18),
    ]
