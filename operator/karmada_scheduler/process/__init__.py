"""The process around the scheduler: the supervisor thread, how the process ends, garbage collection."""
