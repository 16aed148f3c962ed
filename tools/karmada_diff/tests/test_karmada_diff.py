"""What is read from two versions of Karmada's source, and the kinds of differences between decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tools.karmada_diff.__main__ import named_files
from tools.karmada_diff.decisions import CRASH, ORDER, PLACEMENT, REASON, kind_of
from tools.karmada_diff.sources import KarmadaSource, differences

CRD = """\
spec:
  names: {kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, description: any, properties: {many: {type: array, items: {type: string}}}}
"""


def source(folder: Path, **files: str) -> KarmadaSource:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_go", ".go").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return KarmadaSource(folder)


def test_the_files_of_a_program_are_those_of_its_imports_outside_of_its_folder_too(tmp_path: Path) -> None:
    made = source(
        tmp_path,
        cmd__scheduler__main_go='import "github.com/karmada-io/karmada/pkg/util"\n',
        pkg__util__selector_go='import "fmt"\n',
        pkg__util__selector_test_go="",
        pkg__other__other_go="",
    )

    assert {"cmd/scheduler/main.go", "pkg/util/selector.go"} <= set(made.closure())
    assert not [each for each in made.closure() if "other" in each or each.endswith("_test.go")]


def test_fields_of_crds_have_types_and_no_descriptions(tmp_path: Path) -> None:
    made = source(tmp_path, charts__karmada___crds__bases__thing_yaml=CRD)

    assert made.crd_fields() == {
        "Thing/v1": '{"type": "object"}',
        "Thing/v1.spec": '{"type": "object"}',
        "Thing/v1.spec.many": '{"type": "array"}',
        "Thing/v1.spec.many[]": '{"type": "string"}',
    }


def test_gates_and_flags_are_read_with_their_defaults(tmp_path: Path) -> None:
    made = source(
        tmp_path,
        pkg__features__features_go="\tFailover:   {Default: false, PreRelease: featuregate.Beta},\n",
        cmd__scheduler__app__options__options_go='\tfs.IntVar(&o.Port, "port", 10, "A port.")\n',
    )

    assert made.gates() == {"Failover": "Beta, off"}
    assert made.flags() == {"port": "10"}


def test_of_added_fields_the_outermost_is_shown() -> None:
    before = {"a": "1", "gone": "1", "changed": "1"}
    after = {"a": "1", "new": "1", "new.inner": "1", "new[]": "1", "newer": "1", "changed": "2"}

    assert list(differences(before, after)) == ["~ changed  1  ->  2", "- gone  1", "+ new  1", "+ newer  1"]


def result(*clusters: tuple[str, int], reason: str = "Success") -> dict[str, Any]:
    return {"final": {"clusters": clusters, "conditions": [["Scheduled", "True", reason, ""]]}}


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        (result(("a", 1)), result(("a", 1)), ""),
        (result(("a", 1)), result(("a", 2)), PLACEMENT),
        (result(("a", 1), ("b", 1)), result(("b", 1), ("a", 1)), ORDER),
        (result(), result(reason="SchedulerError"), REASON),
        ({"panic": "x"}, result(), CRASH),
        ({"panic": "x"}, {"panic": "y"}, ""),
    ],
)
def test_results_differ_in_one_kind(one: dict[str, Any], other: dict[str, Any], kind: str) -> None:
    assert kind_of(one, other) == kind


def test_the_files_that_our_comments_name_are_found() -> None:
    assert {"pkg/util/selector.go", "pkg/estimator/client/general.go"} <= set(named_files())
