"""Python imports this by itself at its start where its folder is on the path: then nothing reaches a network.

Each try fails, and is written to the file that NETWORK_TRIES names.
"""

import os
import socket
import sys

_TRIES = os.environ["NETWORK_TRIES"]
_NAMES = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}
_USES = {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"}


def _forbid(event: str, arguments: tuple) -> None:
    if event == "socket.__new__":
        tried = arguments[1] in (-1, socket.AF_INET, socket.AF_INET6)
    elif event in _USES:
        tried = arguments[0].family in (socket.AF_INET, socket.AF_INET6)
    else:
        tried = event in _NAMES
    if tried:
        with open(_TRIES, "a") as file:  # noqa: PTH123
            file.write(f"{event} {arguments[1:]}\n")
        raise PermissionError(f"the network is forbidden: {event}")


sys.addaudithook(_forbid)
