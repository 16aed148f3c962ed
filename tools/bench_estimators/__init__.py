"""Measurements with many estimators (`make bench-estimators`); they are programs of tools/, not real ones."""
