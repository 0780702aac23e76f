"""Webhooks after Standard Webhooks 1.0 (contract G8): events are told to addresses that an account names, signed, until answered 2xx.

`outbox` writes events in the transaction that makes them happen, `endpoints` keeps who wants to be told, `deliveries` is the log and the
replay, `deliverer` sends (`python -m account_store.webhooks`). What must not live here: what an event means (its writer knows).
"""
