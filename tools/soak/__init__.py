"""A soak test: a day's worth of churn, compressed, while the memory of the real scheduler process is measured.

    make soak ARGS="--events 1000000"

The scheduler runs as a process of its own (``program``), with kopf, sockets, the Lease and /metrics. ``server`` and
``workload`` are the API server and everybody else who writes to it. Whenever the process is at rest, ``samples`` takes
its figures. ``judge`` reads the samples: what grows although the number of live objects stays the same is a leak.
"""
