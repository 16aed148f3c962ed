"""The state of a binding, read from stored objects. Nothing here decides."""
