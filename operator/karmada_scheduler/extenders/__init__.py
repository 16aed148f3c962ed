"""Programs elsewhere that take part in decisions, asked over HTTP."""
