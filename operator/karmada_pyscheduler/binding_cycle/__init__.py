"""From a decision to the API server: one guarded patch of the result, one of the status, and the Events."""
