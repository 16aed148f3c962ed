"""Mutation testing: small mistakes are planted in the scheduler one at a time, and its unit tests have to fail."""
