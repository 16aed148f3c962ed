"""Loads plugins from the repository, a main of one's own, installed packages and directories of files.

- ``entry_points``: installed packages.
- ``plugin_files``: the plugins of a file.
- ``directory``: the files of a directory and their changes.
- ``setup``: the registry of all plugins, and the profiles that are built from it, again after a change.
- ``manager``: the plugins and extenders of the running scheduler.
"""

from karmada_scheduler.plugin_loader.entry_points import installed
from karmada_scheduler.plugin_loader.setup import PluginSetup

__all__ = ["PluginSetup", "installed"]
