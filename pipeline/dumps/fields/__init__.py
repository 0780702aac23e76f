"""Values that all platforms deliver, read in one place each."""
