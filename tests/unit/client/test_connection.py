"""What has to hold before the first request: it can be imported, by anybody."""

import subprocess
import sys

_NOBODY = """
import os, pwd
def unknown(uid): raise KeyError("getpwuid(): uid not found")
pwd.getpwuid = unknown
os.environ.pop("HOME", None)
import karmada_scheduler.client.connect
print(os.environ["HOME"])
"""


def test_a_user_id_without_a_name_and_a_home_can_import_it() -> None:
    answer = subprocess.run([sys.executable, "-c", _NOBODY], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "/\n"
