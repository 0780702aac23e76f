"""Live streams: their registration, the leases of workers, and the airings.

stream_tables.py is the schema. Accounts register streams (registry.py), workers share them (leases.py) and write airings and gaps under
their leases (airings.py, gaps.py). history.py and report.py read. Out of scope: sound (`stream_monitor`), HTTP.
"""
