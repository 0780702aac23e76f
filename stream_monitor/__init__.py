"""Listens to live streams and writes down what they play: capture, detections, airings. Knows nothing of HTTP routes."""
