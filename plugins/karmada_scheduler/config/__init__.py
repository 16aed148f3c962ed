"""Flags, feature gates and the configuration file, parsed once into frozen values."""
