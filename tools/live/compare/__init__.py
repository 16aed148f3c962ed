"""The same random changes on two real control planes, one per scheduler: ``make fuzz-loop``.

In reading order: `fleet` has the objects at the start, `plane` is one control plane that detects when it is at rest, `model` is
the state from which steps are drawn, `binding_steps`, `cluster_steps`, `group_steps` and `policy_steps` draw the changes, `state`
has what of a binding counts, `compare` which differences count, `run` draws the steps, makes them and compares.
"""
