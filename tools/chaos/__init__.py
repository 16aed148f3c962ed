"""The scheduler under faults on a real control plane, judged from records that it does not make.

In reading order: `plan` draws the faults from a seed; `plane` starts the control plane, both schedulers and the recorders;
`workload` keeps bindings in flight; `faults` injects; `keeper` restarts what ended; `proxy` is the network between our
replicas and the API server. Everything is recorded in a folder: the audit log, every stored version of bindings, clusters
and the Lease (`recorder`, which watches etcd), faults and ends of processes. `records` reads them, `judge` applies the
invariants of `tools.simulation.invariants`, `report` prints.

``make chaos ARGS="--minutes 30 --seed 1"`` runs it; ``make chaos ARGS="--judge FOLDER"`` judges kept records again.
"""
