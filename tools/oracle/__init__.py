"""Our decisions against the real Go core's, over generated worlds; docs/conformance.md tells the result."""
