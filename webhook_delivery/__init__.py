"""Delivery of webhooks: the outbox of the account store goes out as signed HTTP requests (Standard Webhooks 1.0, contract G8).

`queue` leases endpoints and picks what is due, `schedule` says when a delivery is retried, `sender` and `signing` make one attempt,
`deliverer` runs the loop (`python -m webhook_delivery`). Out of scope: events, endpoints and their secrets
(`account_store/webhooks`).
"""
