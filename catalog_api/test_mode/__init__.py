"""Test keys: the small fixed catalog that they ask, and the service that answers them for nothing."""
