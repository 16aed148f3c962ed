"""The plugin files of docs/examples/plugins, each with the configuration next to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.testing import FakeHandle, profiles

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PLUGINS = EXAMPLES / "plugins"
Example = Callable[..., Framework]


@pytest.fixture
def example(tmp_path: Path) -> Example:
    """Build the profile of an example: example("cost", handle=..., prices="...")."""

    def build(name: str, *, handle: FakeHandle | None = None, **args: Any) -> Framework:
        config = yaml.safe_load((PLUGINS / f"{name}.yaml").read_text())
        [profile] = config["profiles"]
        if args:
            profile["pluginConfig"][0]["args"] |= args
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(config))
        return profiles(path, plugin_dir=PLUGINS, handle=handle)[profile["schedulerName"]]

    return build
