"""What a process needs to end: how it ends, threads that do not keep it, garbage collection."""
