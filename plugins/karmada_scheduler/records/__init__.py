"""What is kept of each decision."""
