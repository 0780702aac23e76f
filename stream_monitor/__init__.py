"""Monitoring of live streams: capture, detection, airings. What must not live here: HTTP routes."""
