"""Execution of functions of one bucket, or of one block of a file."""
