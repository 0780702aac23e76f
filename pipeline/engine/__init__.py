"""Where functions of one bucket (or one block of a file) run."""
