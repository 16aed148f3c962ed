"""client-go's work queue, with priorities behind a feature gate."""
