"""The changing state of the service: accounts, keys, credits, rate limits, suggestions, stored answers, users, streams, webhooks.

Start at `Accounts.open(url)` (accounts.py). SQLite holds everything by default, PostgreSQL by URL. Charges do not go through SQLAlchemy,
and key checks and rate limits are answered from memory. Out of scope: HTTP, the catalog's tables, the pipeline.
"""

from account_store.accounts import Accounts as Accounts
from account_store.api_keys import Caller as Caller
from account_store.errors import AccountError as AccountError
