"""Writes explanations as text, JSON and YAML."""
