"""All checks in one run, with one report."""
