"""The same random changes on two real control planes, one per scheduler: ``make fuzz-loop``.

In reading order: `placements` draws placements, `fleet` says what there is at the start, `plane` is one
control plane that knows when it is at rest, `model` is what the drawn steps know of the world,
`binding_steps`, `cluster_steps` and `policy_steps` draw the changes, `state` says what of a binding
counts, `compare` which differences count, `run` plays. `python -m tools.fuzz_loop` is the command line.
"""
