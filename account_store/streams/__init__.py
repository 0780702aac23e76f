"""Live streams: which are monitored, by whom, and what was heard on them.

tables.py is the schema. registry.py is what an account does with its streams; leases.py how workers share them; airings.py and gaps.py what
a worker writes, under its lease; history.py and report.py what is read of it. What must not live here: sound (`stream_monitor`), HTTP.
"""
