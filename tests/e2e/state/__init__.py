"""What the commands say about broken and healthy bindings on a real control plane, compared with what is true there."""
