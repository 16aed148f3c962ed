"""Compares the simulation's models of Karmada's controllers with the real ones."""
