"""Latency and size of the pages of generated fleets: ``make bench-web``

The first page after the start has limits, which are printed with the figures; the exit status is 1 if one is exceeded.
Each page is requested from the process over HTTP, first right after its start, then again. Time is that of the whole
request; CPU time is that of the process meanwhile, which other work on the machine does not change.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

from tools.controlplane.processes import free_port
from tools.web_page.fleet import write

PAGES: Final[Mapping[str, str]] = {
    "fleet": "/",
    "clusters": "/clusters",
    "bindings": "/bindings",
    "decisions": "/decisions",
    "cluster": "/clusters/member-0001",
    "binding": "/b/team-01/app-00001-deployment",
}
LIMITS: Final[Mapping[int, tuple[float, float]]] = {1000: (300, 200), 5000: (1500, 1000)}
"""Milliseconds and kB of the first page, by number of clusters."""

_BINDINGS_PER_CLUSTER: Final = 2


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print one row per page and number of clusters."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.web_page.bench", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--clusters", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--rounds", type=int, default=7, help="the median counts (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args(arguments)
    found = {str(count): measured(count, options.rounds) for count in options.clusters}
    is_within = True
    for count, pages in found.items():
        print(f"{int(count):,} clusters")
        print(f"  {'page':<10} {'first ms':>9} {'again ms':>9} {'cpu ms':>7} {'kB':>6} {'kB gzip':>8}")
        for name, row in pages.items():
            print(
                f"  {name:<10} {row['firstMs']:>9.0f} {row['againMs']:>9.0f} {row['cpuMs']:>7.0f} "
                f"{row['bytes'] / 1000:>6.0f} {row['gzipBytes'] / 1000:>8.1f}"
            )
        if limits := LIMITS.get(int(count)):
            first = pages["fleet"]
            holds = first["firstMs"] <= limits[0] and first["bytes"] <= 1000 * limits[1]
            is_within = is_within and holds
            print(
                f"  first page: at most {limits[0]:,.0f} ms and {limits[1]:,.0f} kB: {'yes' if holds else 'NO'}"
            )
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if is_within else 1


def measured(clusters: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return the figures of each page."""
    with tempfile.TemporaryDirectory() as folder:
        files = write(Path(folder), clusters=clusters, bindings=_BINDINGS_PER_CLUSTER * clusters)
        address = f"127.0.0.1:{free_port()}"
        command = [sys.executable, "-m", "karmada_scheduler", "web", f"--bind-address={address}"]
        command += [f"--clusters={files[0]}", f"--bindings={files[1]}"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr is not None
                for line in process.stderr:
                    if "The page is on" in line:
                        break
                return {
                    name: _page(f"http://{address}{path}", process.pid, rounds)
                    for name, path in PAGES.items()
                }
            finally:
                process.terminate()


def _page(url: str, pid: int, rounds: int) -> dict[str, float]:
    first, body = _get(url)
    before = _cpu_ms(pid)
    again = [_get(url)[0] for _ in range(rounds)]
    used = _cpu_ms(pid) - before
    _, packed = _get(url, gzip=True)
    return {
        "firstMs": round(first, 1),
        "againMs": round(median(again), 1),
        "cpuMs": round(used / rounds, 1),
        "bytes": len(body),
        "gzipBytes": len(packed),
    }


def _get(url: str, *, gzip: bool = False) -> tuple[float, bytes]:
    headers = {"Accept": "text/html", "Accept-Encoding": "gzip" if gzip else "identity"}
    request: Any = urllib.request.Request(url, headers=headers)
    began = time.perf_counter()
    with urllib.request.urlopen(request, timeout=120) as answer:
        body: bytes = answer.read()
    return 1000 * (time.perf_counter() - began), body


def _cpu_ms(pid: int) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
