"""Measures of the house: sizes, ways of an answer, arrows between packages; ``make house`` fails on a step back."""
