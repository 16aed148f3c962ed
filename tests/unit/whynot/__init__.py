"""Tests of karmada_scheduler.whynot."""
