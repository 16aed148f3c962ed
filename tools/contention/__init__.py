"""A saturated fleet in virtual time: who waits for how long, under which rules of waiting."""
