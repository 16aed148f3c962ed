"""The composition root: builds everything, starts it in order, and stops it in order.

Two event loops share the work. Bindings are scheduled in that of the main thread. The Lease is renewed and health
checks are answered in that of the supervisor's thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from karmada_pyscheduler.app.application import Application
from karmada_pyscheduler.app.host import REAL, Environment, Host
from karmada_scheduler.config.options import Options
from karmada_scheduler.framework.profile.factory import Registration


async def run(
    options: Options, own_plugins: Sequence[Registration] = (), *, environment: Environment = REAL
) -> None:
    """Run the scheduler until SIGINT or SIGTERM.

    If the Lease is lost, the process ends, and this function does not return.

    Args:
        options: The validated command line.
        own_plugins: The plugins that a program of one's own registers.
        environment: The environment of the process.

    Raises:
        ConnectionConfigError: No usable credentials.
        ListenError: An address cannot be listened on.
        ConfigError: ``--config`` or a plugin cannot be used.
    """
    host = Host(options, environment)
    try:
        await host.serve()
        # Probes are answered while plugins are loaded, which may take half a minute.
        await Application(options, own_plugins, host).run()
    finally:
        await host.close()
