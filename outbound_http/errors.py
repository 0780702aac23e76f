"""The reasons why an address is not reached, each with a stable code. Callers above translate them into their own errors."""

from __future__ import annotations


class OutboundError(Exception):
    """No connection is made; the message says why."""

    code = "refused"


class InvalidAddressError(OutboundError):
    """The text is not an address in a spelling that we accept."""

    code = "invalid_value"


class InvalidAllowListError(OutboundError):
    """An entry of the operator's allow list cannot be read."""

    code = "invalid_value"


class RefusedAddressError(OutboundError):
    """The address is in a network that callers may not reach through us, or names a port that they may not."""

    code = "address_refused"


class UnreachableError(OutboundError):
    """The name does not resolve, or none of its addresses answers. Trying again later may help."""

    code = "unreachable"
