"""How many of the replicas that are placed run: two schedulers in turns on members that run Pods."""
