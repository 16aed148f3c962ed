"""What was last seen of the API server, by kind."""
