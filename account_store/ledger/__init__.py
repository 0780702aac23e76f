"""The credit ledger: exact use of each account's month, over any number of requests, processes and crashes.

`Ledger` (ledger.py) is the entry point. `batch_collector` groups the operations of an event loop, `writer` commits them in batches,
`ledger_database` applies a batch, `sqlite_ledger` and `postgresql_ledger` hold the differences between the databases.
Out of scope: the price of a request and the reasons for a refund (the API knows its routes).
"""

from account_store.ledger.ledger import Ledger as Ledger
from account_store.ledger.operations import Charge as Charge
from account_store.ledger.operations import Reservation as Reservation
