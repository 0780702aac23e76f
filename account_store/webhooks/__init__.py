"""Stored state of webhooks (contract G8, Standard Webhooks 1.0): endpoints, their secrets, events and deliveries.

`outbox` writes events in the transaction that makes them happen. `endpoints` keeps the addresses of an account. `deliveries` is the log and
the replay. `sealing` and `secret_keys` encrypt secrets. Sending belongs in `webhook_delivery`, and the meaning of an event belongs to its
writer.
"""
