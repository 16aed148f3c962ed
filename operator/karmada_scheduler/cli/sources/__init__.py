"""Where the commands that explain get their objects: files, or a control plane."""
