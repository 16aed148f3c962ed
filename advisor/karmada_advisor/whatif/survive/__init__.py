"""What the loss of each cluster, zone, region or provider would do to every binding."""
