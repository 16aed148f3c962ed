"""The page over files, served to the test."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Self, TypeVar

import aiohttp

from karmada_advisor.cli.flags.web import web_parser
from karmada_advisor.cli.questions import process_rules_of
from karmada_advisor.web.answer_worker import AnswerWorker
from karmada_advisor.web.answers import Answers
from karmada_advisor.web.authorization import Authorization
from karmada_advisor.web.handlers import Handlers
from karmada_advisor.web.pages import Pages
from karmada_advisor.web.reading import Reader
from karmada_advisor.web.state import Reveal
from karmada_advisor.web.viewer import NOBODY, Viewer
from karmada_pyscheduler.client.connection import ApiConnection
from karmada_pyscheduler.http_server.read_only_server import ReadOnlyServer
from karmada_pyscheduler.http_server.request_guard import (
    Access,
    AnsweredRequest,
    RequestLimits,
    RequestRefusal,
)
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder
from tests.unit.estimator.fault_server import free_port
from tests.unit.explain.fleet import billing, checkout, fleet

T = TypeVar("T")


class Inline(AnswerWorker):
    """Computes in the test's thread; results pass through bytes, as those of a process do."""

    async def answer(self, key: Hashable, work: Callable[[], T], *, requester: str = "") -> T:
        found: T = pickle.loads(pickle.dumps(work()))
        self.computed(found)
        return found

    async def run(self, work: Callable[[], T], seconds: float) -> T:
        return work()


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    text: str
    headers: dict[str, str]
    cookies: tuple[str, ...] = ()

    @property
    def fields(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found

    @property
    def page(self) -> Page:
        return Page.of(self.text)


@dataclass
class Page(HTMLParser):
    """What the tests look at in a page."""

    words: list[str] = field(default_factory=list)
    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @classmethod
    def of(cls, text: str) -> Page:
        page = cls()
        HTMLParser.__init__(page, convert_charrefs=True)
        page.feed(text)
        page.close()
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))

    def attributes(self, tag: str, name: str) -> list[str]:
        return [
            attributes[name] for found, attributes in self.elements if found == tag and name in attributes
        ]


class Site:
    """A server over files."""

    def __init__(
        self,
        folder: Path,
        *,
        clusters: Sequence[ClusterBuilder] | None = None,
        bindings: Sequence[BindingBuilder] | None = None,
        files: tuple[Path, Path] | None = None,
        flags: Sequence[str] = (),
        hosts: frozenset[str] = frozenset(),
        viewer: Viewer | None = None,
        refusal: RequestRefusal | None = None,
        sessions: Authorization | None = None,
        reveal: Reveal = Reveal.OWN,
        connection: ApiConnection | None = None,
        on_response: Callable[[AnsweredRequest], None] = lambda _: None,
    ) -> None:
        paths = files or (folder / "clusters.json", folder / "bindings.json")
        if files is None:
            write(paths[0], clusters if clusters is not None else fleet())
            write(paths[1], bindings if bindings is not None else [checkout(), billing()])
        given = [f"--clusters={paths[0]}", f"--bindings={paths[1]}", "--refresh=1", *flags]
        self.arguments = web_parser().parse_args(given)
        self.files = paths
        self.port = free_port()
        rules = process_rules_of(self.arguments)
        self.reader = Reader(self.arguments, rules)
        self.reader.read()
        self.answers = Answers(self.arguments, self.reader, rules, connection=connection)
        found = refusal or viewer or (NOBODY if sessions is not None else None)
        self.worker = Inline(computed=self.answers.computed)
        handlers = Handlers(
            self.answers, self.worker, Pages(), is_open=found is None, sessions=sessions, reveal=reveal
        )
        self.routes = handlers.routes()

        async def who(headers: Mapping[str, str], address: str) -> Viewer | RequestRefusal:
            if sessions is not None:
                return await sessions.viewer(headers, address)
            assert found is not None
            return found

        self.server = ReadOnlyServer(
            f"127.0.0.1:{self.port}",
            self.routes,
            posts=handlers.posts(),
            access=Access(hosts, "--allowed-host", None if found is None else who, handlers.is_for_everybody),
            limits=RequestLimits(1000, 1000, user_rate=1000, user_burst=1000),
            problem_page=handlers.problem_page,
            on_response=on_response,
        )

    async def __aenter__(self) -> Self:
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()

    async def refresh(self) -> None:
        """Compute what the page computes before anybody asks."""
        await self.answers.background.refresh(self.worker, self.answers.state)

    async def get(
        self, path: str, method: str = "GET", *, form: dict[str, str] | None = None, **headers: str
    ) -> Answer:
        given = {"Accept": "text/html"} | {name.replace("_", "-"): value for name, value in headers.items()}
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                method,
                f"http://127.0.0.1:{self.port}{path}",
                headers=given,
                data=form,
                allow_redirects=False,
            ) as found,
        ):
            return Answer(
                found.status,
                await found.text(),
                dict(found.headers),
                tuple(found.headers.getall("Set-Cookie", ())),
            )


def without_times(text: str) -> str:
    """Return the text of a page without what depends on when it is read."""
    return re.sub(r'<time datetime="[^"]*">[^<]*</time>', "", text)


def write(path: Path, builders: Sequence[BindingBuilder | ClusterBuilder]) -> None:
    path.write_text("\n".join(f"---\n{json.dumps(each.manifest())}" for each in builders))
