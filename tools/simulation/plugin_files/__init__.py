"""The plugins of simulations; each file is one of a plugin directory."""
