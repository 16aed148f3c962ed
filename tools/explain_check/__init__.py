"""Compares the traces of explanations with the decisions that they explain."""
