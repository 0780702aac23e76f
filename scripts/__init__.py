"""Scripts of the project itself: set-up, demo, generated pages."""
