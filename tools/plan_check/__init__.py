"""Plans that come true: each change is planned, made on a real control plane, and compared."""
