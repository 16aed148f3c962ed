"""The scheduling loop: it takes a key, decides, and starts the binding cycle."""
