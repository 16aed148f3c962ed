"""What scheduling costs: throughput on a control plane, a cold start, and decisions on their own."""
