"""Airplay reports: what aired on an account's streams within whole days, as JSON, CSV or Parquet, made and sent stream by stream.

    current     what aired recordings are called now: the live catalog, merged ids followed, else what they were called when they aired
    sheets      one stream's part of a report, as columns
    forms       the media types, and which of them a caller accepts
    as_json, as_csv, as_parquet    sheets to bytes; the rows are the same in all
    sending     an answer that is made while it is sent
    settling    packs days that are over before a report asks for them

A report holds one stream in memory at a time. What must not live here: which airings there are (account_store/streams/report.py), how the
route is asked (handlers/report.py).
"""
