"""Where the commands that explain get their objects: files, or a live control plane."""
