"""Measurements that no test makes: times depend on the machine. Tests here are of the measuring itself."""
