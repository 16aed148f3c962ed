"""Compares predicted claims and bindings with those of Karmada's real resource detector."""
