"""The in-tree plugins: one file each, written against ``karmada_scheduler.framework`` only."""
