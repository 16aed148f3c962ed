"""Numbers in, numbers out: Webster's method, Go's sort, the choice of regions, columns."""
