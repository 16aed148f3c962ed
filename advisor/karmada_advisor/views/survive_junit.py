"""The forecast of losses as JUnit XML: a test case per domain, so that CI shows which ones flip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as ET

from karmada_advisor.explain.amounts import counted
from karmada_advisor.survive.domains import kind_order
from karmada_advisor.survive.model import DomainLoss, SurvivalReport
from karmada_advisor.views.layout import printable
from karmada_advisor.views.survive_words import LossGroup, by_domain, groups
from karmada_advisor.views.xml_elements import add_text, document, element

_GROUPS = 20


def survive_junit(report: SurvivalReport) -> str:
    """Return one ``testsuite`` for each kind of domain; a domain fails if it has something of ``--fail-on``.

    A domain that is not done is skipped. The names of the cases and their number depend on the clusters alone.
    """
    failing, listed = set(report.failing), by_domain(report)
    root = element(
        None, "testsuites", name="survive", **_counts(report.domains, failing, range(len(report.domains)))
    )
    for kind in sorted({each.kind for each in report.domains}, key=kind_order):
        numbers = [number for number, each in enumerate(report.domains) if each.kind == kind]
        suite = element(
            root, "testsuite", name=f"survive.{kind}", **_counts(report.domains, failing, numbers)
        )
        for number in sorted(numbers, key=lambda each: report.domains[each].name):
            _add_domain(
                suite,
                report,
                number,
                groups(listed.get(number, ()), report.settings),
                fails=number in failing,
            )
    return document(root).decode()


def _counts(domains: Sequence[DomainLoss], failing: set[int], numbers: Sequence[int]) -> dict[str, str]:
    return {
        "tests": str(len(numbers)),
        "failures": str(sum(number in failing for number in numbers)),
        "errors": "0",
        "skipped": str(sum(not domains[number].done for number in numbers)),
    }


def _add_domain(
    suite: ET.Element, report: SurvivalReport, number: int, found: Sequence[LossGroup], *, fails: bool
) -> None:
    domain = report.domains[number]
    case = element(suite, "testcase", classname=f"survive.{domain.kind}", name=domain.name)
    if not domain.done:
        element(case, "skipped", message="not done (--timeout)")
    elif fails:
        chosen = domain.chosen
        message = (
            f"{counted(chosen.dark, 'workload')} dark, {counted(chosen.missing, 'replica')} missing, "
            f"{chosen.interrupted:,} interrupted"
        )
        add_text(case, "failure", f"{message} (--fail-on {','.join(report.fail_on)})", [*_lines(found)])


def _lines(found: Sequence[LossGroup]) -> Iterator[str]:
    for each in found[:_GROUPS]:
        message = f": {each.message}" if each.message else ""
        binding = each.members[0][0]
        yield printable(f"{each.policy}  {len(each.members):,}  {each.what}{message}  (such as {binding})")
    if len(found) > _GROUPS:
        yield f"and {counted(len(found) - _GROUPS, 'more group')}"
