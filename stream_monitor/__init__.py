"""Monitoring of live streams: capture, detection, airings. Out of scope: HTTP routes."""
