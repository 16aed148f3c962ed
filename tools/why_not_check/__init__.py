"""Checks the answers of ``why-not`` without trusting them; see ``__main__``."""
