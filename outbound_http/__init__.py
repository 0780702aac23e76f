"""Guarded connections to addresses that callers name (streams, webhooks): to public machines, or to those that the operator allows.

    outbound = Outbound(read_allow_list(os.environ))
    resolved = outbound.check("https://radio.example/live.mp3")    # resolves, checks every address; RefusedAddressError
    connection = outbound.connect(resolved, timeout_seconds=10)    # a socket to an address that was checked; TLS for https
    outbound.check(resolved.target.follow(location))               # a redirect names another address: check it like the first

`targets` parses URLs, `addresses` classifies IP addresses, `allow_list` reads the operator's list, `guard` resolves and connects,
`transport` does the same for httpx, `mails` sends mails through the operator's own server. Every failure of the guard is an
`OutboundError`. Out of scope: what is sent or received.
"""

from outbound_http.allow_list import ALLOW_VARIABLE as ALLOW_VARIABLE
from outbound_http.allow_list import AllowList as AllowList
from outbound_http.allow_list import read_allow_list as read_allow_list
from outbound_http.errors import InvalidAddressError as InvalidAddressError
from outbound_http.errors import InvalidAllowListError as InvalidAllowListError
from outbound_http.errors import OutboundError as OutboundError
from outbound_http.errors import RefusedAddressError as RefusedAddressError
from outbound_http.errors import UnreachableError as UnreachableError
from outbound_http.guard import Outbound as Outbound
from outbound_http.guard import ResolvedTarget as ResolvedTarget
from outbound_http.targets import Target as Target
from outbound_http.targets import parse_target as parse_target
