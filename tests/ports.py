"""Ports for servers that get one on the command line."""

from __future__ import annotations

import itertools
import os
import socket

LOWEST, COUNT = 10_240, 20_480
"""Below the ports that the kernel hands out (32,768 and above): no connection and no server that asks for "any" port takes one of these."""
_next = itertools.count(os.getpid() * 37)  # processes begin at different places


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that no other test of this machine gets as long as this process lives.

    To bind port 0, to close it and to tell its number is a race: the kernel may give the number away again before the server binds it.
    A name in the abstract namespace of Unix sockets stands for the port here. It has one owner, and the kernel frees it with the process.
    """
    for number in itertools.islice(_next, COUNT):
        port = LOWEST + number % COUNT
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0music-catalog-tests-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            name.close()
            continue
        name.detach()  # open until the process ends
        return port
    raise AssertionError("all ports for tests are taken")
