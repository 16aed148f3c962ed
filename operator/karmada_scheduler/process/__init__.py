"""The process around the scheduler: health endpoints, the supervisor thread, how the process ends, garbage collection."""
