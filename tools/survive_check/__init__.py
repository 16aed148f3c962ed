"""Whether forecasts of losses come true on a real control plane."""
