"""The points from Reserve to PostBind as one transaction, and its result."""
