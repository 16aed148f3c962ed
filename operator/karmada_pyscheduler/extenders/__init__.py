"""Extenders: programs that take part in decisions over HTTP."""
