"""A fast fake API server that costs next to nothing, and measurements in which a scheduler is the limit."""
