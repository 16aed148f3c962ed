"""What differs between two versions of Karmada, for taking in a new one: ``make karmada-diff FROM=1.18.2 TO=1.19.0``."""
