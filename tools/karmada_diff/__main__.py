"""Prints what differs between two versions of Karmada, without a judgement: source, CRDs, gates, flags, protocol, decisions."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import yaml

from tools.check_frame import parser
from tools.controlplane.binaries import BuildError
from tools.controlplane.versions import VERSIONS
from tools.karmada_diff.decisions import compared
from tools.karmada_diff.sources import KarmadaSource, differences, fetched

ROOT: Final = Path(__file__).parents[2]
_NAMED: Final = re.compile(r"\b((?:pkg|cmd)/[\w/.-]+?)(?=[ ,;:)]|\.?$|\.\s)")
_SEED: Final = 11


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return the exit status."""
    made = parser("make karmada-diff", __doc__)
    made.add_argument("before", metavar="FROM", help="a version such as 1.17.1")
    made.add_argument("after", metavar="TO", help="a version such as 1.18.2")
    made.add_argument("--cases", type=int, default=6000, help="generated decisions (default: %(default)s)")
    made.add_argument(
        "--diffs", action="store_true", help="print the differences of the files that our comments name"
    )
    options = made.parse_args(arguments)
    try:
        before, after = fetched(options.before), fetched(options.after)
        differs = _print_sources(before, after, options)
        if differs:
            _print_decisions(options)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _print_sources(before: KarmadaSource, after: KarmadaSource, options: argparse.Namespace) -> bool:
    """Print all that is read from the source; return whether files of karmada-scheduler differ."""
    old, new = before.closure(), after.closure()
    packages = len({Path(each).parent for each in new})
    changed = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    _print_part(
        f"Files of karmada-scheduler ({packages} packages of Karmada)",
        (f"{_sign(old, new, name)} {name}" for name in changed),
        "nothing differs in the scheduler",
    )
    for title, one, other in (
        ("Fields of CRDs", before.crd_fields(), after.crd_fields()),
        ("Feature gates", before.gates(), after.gates()),
        ("Flags of karmada-scheduler", before.flags(), after.flags()),
        ("Messages of the estimator", before.protocol(), after.protocol()),
        ("Webhooks of bindings and policies", before.webhooks(), after.webhooks()),
    ):
        _print_part(title, differences(one, other))
    named = [each for each in named_files() if any(path.startswith(each) for path in changed)]
    _print_part("Files and folders that our comments name as a source, and that differ", named)
    if options.diffs:
        for name in changed:
            if name.startswith(tuple(named)):
                text, newer = (files.get(name, "").splitlines(keepends=True) for files in (old, new))
                sys.stdout.writelines(difflib.unified_diff(text, newer, f"a/{name}", f"b/{name}"))
    return bool(changed)


def _print_decisions(options: argparse.Namespace) -> None:
    versions = [VERSIONS.get(each.removeprefix("v")) for each in (options.before, options.after)]
    if versions[0] is None or versions[1] is None:
        print(
            f"\nDecisions: not compared; pins exist for {', '.join(VERSIONS)} (tools/controlplane/versions)"
        )
        return
    for title, cases, default_gates in (
        ("default gates", options.cases, True),
        ("all gates", options.cases // 3, False),
    ):
        found = compared(versions[0], versions[1], seed=_SEED, cases=cases, default_gates=default_gates)
        print(f"\nDecisions, {title}: {found.cases} cases")
        for kind, count in found.kinds.most_common():
            print(f"  {count:>6}  {100 * count / found.cases:5.1f} %  {kind}")
        for kind, examples in found.examples.items():
            for example in examples:
                print(f"\n# {kind}\n{yaml.safe_dump(example, sort_keys=False, width=110)}")


def named_files() -> list[str]:
    """Return the files and folders of Karmada that the comments of our packages name as a source."""
    found: set[str] = set()
    for package in ("operator", "plugins", "advisor"):
        for path in sorted((ROOT / package).glob("**/*.py")):
            for source in re.findall(r"Source: karmada v[\s\S]*?(?:\n\n|\"\"\")", path.read_text()):
                found.update(_NAMED.findall(" ".join(source.split())))
    return sorted(found)


def _sign(old: Mapping[str, str], new: Mapping[str, str], name: str) -> str:
    return "+" if name not in old else "-" if name not in new else "~"


def _print_part(title: str, lines: Iterable[str], nothing: str = "nothing differs") -> None:
    listed: Iterator[str] = iter(lines)
    print(f"\n{title}:")
    first = next(listed, None)
    for line in [nothing] if first is None else [first, *listed]:
        print(f"  {line}")


if __name__ == "__main__":
    sys.exit(main())
