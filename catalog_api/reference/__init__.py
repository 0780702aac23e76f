"""The reference of the interface: examples of the description, and the page at `/v1/docs`."""
