"""Tests of why-not."""
