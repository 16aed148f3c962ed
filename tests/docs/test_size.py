"""``make size`` counts code and words, and nothing else."""

from __future__ import annotations

from tools import size

MODULE = '''"""A docstring
of two lines."""

import os  # a comment


# a comment
def name() -> str:
    """Return it."""
    return os.path.join(
        "a",
    )


TEXT = """a string
is code"""
'''


def test_lines_with_comments_docstrings_and_blanks_only_do_not_count() -> None:
    assert size.code_lines(MODULE) == 7


def test_a_file_counts_for_the_part_that_its_folder_belongs_to() -> None:
    files = {
        "operator/a.py": "a = 1\n",
        "advisor/a.py": "a = 1\n",
        "plugins/a_pb2.py": "a = 1\n",
        "tools/a.py": "a = 1\nb = 2\n",
        "tests/a.py": "a = 1\n",
        "README.md": "two words\n",
        "docs/a.md": "one\n",
        "docs/decisions/a.md": "not counted\n",
        "operator/README.md": "not counted\n",
    }
    assert size.sizes(files) == {"product": 2, "tools": 2, "tests": 1, size.WORDS: 3}


def test_a_tracked_file_that_was_deleted_counts_nothing() -> None:
    assert size._on_disk("no/such/file.py") == ""
