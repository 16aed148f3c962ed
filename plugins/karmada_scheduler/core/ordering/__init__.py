"""Candidates in the order of preference: a shared order over columns, with overrides per binding."""
