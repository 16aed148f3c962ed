"""Watches, lists and event handlers: what the API server reports enters the cache, and keys enter the queue."""
