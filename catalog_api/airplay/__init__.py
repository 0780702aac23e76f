"""Airplay reports: what aired on an account's streams within whole days, as JSON, CSV or Parquet.

    track_names        what aired recordings are called
    name_preload       names that are read before a report asks for them
    stream_sheets      one stream's part of a report, as columns
    report_formats     sheets to bytes, and the media types
    streamed_answer    an answer that is produced while it is sent
    day_packing        days that are over, packed before a report asks for them

A report holds one stream in memory at a time. Out of scope: which airings there are (account_store/streams/report.py), the
parameters of the route (routes/airplay_report.py).
"""
