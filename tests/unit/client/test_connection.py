"""The client can be imported by a user without a name and a home directory."""

import subprocess
import sys

_UNNAMED_USER = """
import os, pwd
def unknown(uid): raise KeyError("getpwuid(): uid not found")
pwd.getpwuid = unknown
os.environ.pop("HOME", None)
import karmada_scheduler.client.connect
print(os.environ["HOME"])
"""


def test_a_user_without_a_name_and_a_home_can_import_the_client() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", _UNNAMED_USER], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "/\n"
