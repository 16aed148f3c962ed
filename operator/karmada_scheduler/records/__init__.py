"""Records of decisions: what is kept of each, the endpoints that serve it, and the decision log."""
