"""The process around the scheduler: the supervisor thread."""
