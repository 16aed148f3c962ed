"""Who says how much a cluster can take; ``general`` reads it from the clusters' own reports."""
