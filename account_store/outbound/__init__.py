"""Connections to addresses that callers name (streams, webhooks): only to public machines, or to those that the operator allows.

    outbound = Outbound(allowed_by(os.environ))
    vetted = outbound.check("https://radio.example/live.mp3")    # resolved, every address judged; RefusedAddressError
    connection = outbound.connect(vetted, timeout_seconds=10)    # a socket to the very address that was checked, TLS where it is https
    outbound.check(vetted.target.follow(location))               # a redirect is another address: checked anew, like the first

`targets` reads addresses, `addresses` judges IP addresses, `allowed` is the operator's list, `guard` resolves and connects, `transport` is
the same for httpx. What must not live here: what is sent or received.
"""

from account_store.outbound.allowed import ALLOW_VARIABLE as ALLOW_VARIABLE
from account_store.outbound.allowed import AllowList as AllowList
from account_store.outbound.allowed import allowed_by as allowed_by
from account_store.outbound.guard import Outbound as Outbound
from account_store.outbound.guard import RefusedAddressError as RefusedAddressError
from account_store.outbound.guard import UnreachableError as UnreachableError
from account_store.outbound.guard import Vetted as Vetted
from account_store.outbound.targets import Target as Target
from account_store.outbound.targets import parse_target as parse_target
