"""The HTTP server of the process: health, metrics, and records of decisions."""
