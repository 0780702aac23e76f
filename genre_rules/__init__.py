"""The rule language that maps source genre strings onto the canonical tree; data in YAML, no platform code."""
