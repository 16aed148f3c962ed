"""Our scheduler while it runs: under faults, for a day, and next to karmada-scheduler; judged from what it does not record itself.

- ``make chaos``: `run` starts a real control plane with both schedulers (`plane`), keeps bindings in flight (`workload`), and injects
  the faults that `fault_plan` draws from a seed (`faults`; `keeper` restarts what ended, `proxy` is the network of our replicas).
  Everything is recorded in a folder: the audit log, every stored version of bindings, clusters and the Lease (`recorder`, which
  watches etcd), faults and ends of processes. `records` reads them, `judge` applies the invariants of
  `tools.simulation.invariants`, `report` prints.
- ``make soak``: `soak` runs the process on a fake API server under the changes and faults of a day (`churn`), `sampler` takes its
  figures from outside, and `growth` judges them. `program` is the process with gauges of what it holds, or with a planted fault.
- ``make fuzz-loop``: `compare` makes the same random changes on two control planes, one per scheduler.
"""
