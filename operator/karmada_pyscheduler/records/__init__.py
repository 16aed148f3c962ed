"""Records of decisions: the endpoints that serve them, and the decision log."""
