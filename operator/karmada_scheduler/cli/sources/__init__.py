"""Where the commands read manifests from: files, or a live control plane."""
