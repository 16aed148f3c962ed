"""Where plugins come from: this repository, one's own main, installed packages, files in a directory.

- ``entry_points``: installed packages.
- ``plugin_files``: a file becomes plugins.
- ``directory``: which files there are, and which of them changed.
- ``setup``: all of them in one registry, and the profiles that are built from it, again after a change.
"""

from karmada_scheduler.plugin_loader.entry_points import installed
from karmada_scheduler.plugin_loader.setup import PluginSetup

__all__ = ["PluginSetup", "installed"]
