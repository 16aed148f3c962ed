"""The objects of the API server, as last seen, by kind."""
