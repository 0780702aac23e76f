"""ASGI layers around the routes, in the order in which a request passes them, and what they share.

    request_tracking     request ids, counts, the request log
    authentication       API keys
    unknown_key_limit    429 for clients that guess keys
    fast_routes          the direct way to the handlers of frequent GET routes
    time_slices          turns of long work in the event loop

Out of scope: what a plan allows (entitlements.py), prices (credit_prices.py), charges (metering.py).
"""
