"""From configuration to plugins in running order: registry, factories, profiles."""
