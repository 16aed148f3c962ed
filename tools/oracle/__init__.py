"""Our decisions against the real Go core's, over generated scenarios; docs/conformance.md says what is compared."""
