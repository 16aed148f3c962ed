"""Tests of karmada_advisor.whynot."""
