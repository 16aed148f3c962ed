"""The flags of each command, with the standard library only: help and errors need nothing of what a command runs with."""
