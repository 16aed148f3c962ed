"""What differs between two versions of Karmada's source."""

from __future__ import annotations

from pathlib import Path

from tools.karmada_diff import compared, lines, named_in_comments

GATES = "pkg/features/features.go"


def source(folder: Path, **packages: str) -> Path:
    """Write a version whose scheduler imports packages of util."""
    text = 'import "github.com/karmada-io/karmada/pkg/util"\n'
    files = {
        "cmd/scheduler/main.go": text,
        "pkg/util/selector_test.go": "",
        "pkg/other/other.go": "",
        GATES: "",
    }
    files |= {f"pkg/util/{name}.go": text for name, text in packages.items()}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def test_compared_are_the_files_of_the_scheduler_and_the_gates_but_no_tests(tmp_path: Path) -> None:
    found = compared(source(tmp_path, selector='import "fmt"\n'))
    assert set(found) == {"cmd/scheduler/main.go", "pkg/util/selector.go", GATES}


def test_files_are_added_removed_and_changed_and_those_of_our_comments_are_marked(tmp_path: Path) -> None:
    old = compared(source(tmp_path / "old", gone="", changed="one\n"))
    new = compared(source(tmp_path / "new", added="", changed="two\n"))
    found = list(lines(old, new, {"pkg/util/ch"}, with_diffs=True))
    assert found[:2] == ["+ pkg/util/added.go", "~ pkg/util/changed.go *"]
    assert {"-one", "+two", "- pkg/util/gone.go"} <= set(found)


def test_comments_of_the_product_name_sources() -> None:
    assert {"pkg/util/selector.go", "pkg/estimator/client/general.go"} <= named_in_comments()
