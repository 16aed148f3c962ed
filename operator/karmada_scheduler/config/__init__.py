"""What the process was told: flags, feature gates. Parsed once into frozen values and handed down."""
