"""Credits: what an account has used of its calendar month, exact for any number of requests, processes and crashes.

`Ledger` (ledger.py) is the way in; `writer` drains what waits into one transaction; `books` decides, `sqlite_books` and `postgresql_books`
hold what differs. What must not live here: what a request costs and when it is given back (the API knows its routes).
"""

from account_store.ledger.ledger import Ledger as Ledger
from account_store.ledger.orders import Charge as Charge
from account_store.ledger.orders import Reservation as Reservation
