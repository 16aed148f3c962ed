"""Decides without a control plane: what the scheduler would do with bindings, in the order of its queue."""
