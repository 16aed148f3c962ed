"""Checks of what the commands say, in pytest modules that plain ``pytest`` leaves out: they take too long for every run."""
