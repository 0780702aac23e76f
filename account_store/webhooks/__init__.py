"""What the store keeps of webhooks (contract G8, Standard Webhooks 1.0): endpoints, their secrets, events and deliveries.

`outbox` writes events in the transaction that makes them happen. `endpoints` keeps the addresses of an account, `deliveries` is the log
and the replay, `sealing` and `secret_keys` encrypt secrets. What must not live here: sending (`webhook_delivery`), and what an event means
(its writer knows).
"""
