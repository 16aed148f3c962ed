"""The API server: one connection, and what is written through it."""
