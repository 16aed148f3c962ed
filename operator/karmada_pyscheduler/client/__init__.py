"""The connection to the API server, and the clients that use it."""

import os
from pathlib import Path

# kubernetes looks for ~/.kube while it is imported. That fails for a user id without an entry in the user database,
# unless HOME is set; container runtimes set it to / then.
try:
    Path.home()
except RuntimeError:
    os.environ["HOME"] = "/"
