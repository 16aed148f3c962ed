"""Answers as parts of documents, and the formats in which they are written."""
