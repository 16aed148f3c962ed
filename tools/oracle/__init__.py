"""Our decisions against the real Go core's, over generated scenarios; docs/conformance.md has the results."""
