"""The only state of the service that changes: accounts, keys, credits, rate limits, suggestions, stored answers, users, streams, airings.

Start at `Accounts.open(url)` (accounts.py). Everything is kept in SQLite by default, in PostgreSQL by URL; nothing here knows HTTP, the
catalog's tables or the pipeline. What every request needs (key check, rate limit, charge) never goes through SQLAlchemy.
"""

from account_store.accounts import Accounts as Accounts
from account_store.api_keys import Caller as Caller
from account_store.errors import AccountError as AccountError
