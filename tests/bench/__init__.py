"""What scheduling costs: throughput on a control plane, and decisions on their own."""
