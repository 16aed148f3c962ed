"""The plugins and extenders of the running scheduler, and the handle that it gives them."""
