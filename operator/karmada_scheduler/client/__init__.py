"""The API server: one connection, and what is written through it."""

import os
from pathlib import Path

# kubernetes looks for ~/.kube while it is imported, and cannot be imported by a user id that the user database
# does not know, unless HOME is set; container runtimes say / then.
try:
    Path.home()
except RuntimeError:
    os.environ["HOME"] = "/"
