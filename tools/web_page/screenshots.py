"""Screenshots of every view, of a real control plane: ``make screenshots``"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright

from tools.web_page.plane import shown

FOLDER: Final = Path(__file__).parents[2] / "docs" / "web"
VIEWS: Final[Mapping[str, str]] = {
    "fleet": "/",
    "clusters": "/clusters",
    "bindings": "/bindings",
    "decisions": "/decisions",
    "cluster": "/clusters/us-east-3",
    "cluster-why-not": "/clusters/us-west-5/why-not",
    "binding": "/b/shop/shop-web-001-deployment",
    "binding-not-placed": "/b/pay/pay-web-001-deployment",
    "why-not": "/why-not/shop/shop-web-001-deployment?cluster=us-west-2",
    "plan": "/plan?without=us-east-4",
}
DARK: Final = ("fleet", "binding-not-placed")
NARROW: Final = ("fleet", "bindings", "binding-not-placed")
_WIDTH: Final = 1280
_TALLEST: Final[Mapping[str, int]] = {"binding": 1500, "binding-not-placed": 1200}
_TALL: Final = 1100
_MILLISECONDS: Final = 180_000


def chromium() -> str:
    """Return the path of Debian's Chromium, or of another one; "" without any."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM", "") or next(filter(None, map(shutil.which, names)), "")


@contextmanager
def browser() -> Iterator[Browser]:
    """Start it without a window."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=chromium(),
            args=["--no-sandbox", "--disable-gpu", "--font-render-hinting=none"],
        )
        try:
            yield started
        finally:
            started.close()


def take(url: str, folder: Path) -> None:
    """Take all screenshots of a page."""
    folder.mkdir(parents=True, exist_ok=True)
    with browser() as started:
        for name, path in VIEWS.items():
            _take(started, f"{url.rstrip('/')}{path}", folder / f"{name}.png")
        for name in DARK:
            _take(started, f"{url.rstrip('/')}{VIEWS[name]}", folder / f"{name}-dark.png", scheme="dark")
        for name in NARROW:
            _take(started, f"{url.rstrip('/')}{VIEWS[name]}", folder / f"{name}-narrow.png", width=390)


def _take(started: Browser, url: str, file: Path, *, scheme: str = "light", width: int = _WIDTH) -> None:
    page = started.new_page(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page.goto(url, timeout=_MILLISECONDS)
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size(
        {"width": width, "height": min(height, _TALLEST.get(file.stem.removesuffix("-dark"), _TALL))}
    )
    page.screenshot(path=file, timeout=_MILLISECONDS)
    page.close()


def main(arguments: list[str] | None = None) -> int:
    """Take the screenshots of a page that runs, or of a control plane started for them."""
    parser = argparse.ArgumentParser(prog="python -m tools.web_page.screenshots", description=__doc__)
    parser.add_argument("--url", help="of a page that runs; without it, a control plane is started")
    parser.add_argument("--out", type=Path, default=FOLDER, help="default: %(default)s")
    options = parser.parse_args(arguments)
    if not chromium():
        print("error: there is no Chromium; `make chromium` installs Debian's", file=sys.stderr)
        return 1
    if options.url:
        take(options.url, options.out)
        return 0
    with tempfile.TemporaryDirectory() as folder, shown(Path(folder) / "plane") as found:
        take(found.url, options.out)
    print(f"Screenshots of {len(VIEWS)} views are in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
