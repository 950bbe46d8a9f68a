"""Holds a network namespace while its parent lives, and opens sockets in it.

Started as ``python -I -S doorman.py`` inside the namespace, with a Unix socket as its standard input.  It says
``ready`` first; then each message ``listen HOST PORT`` or ``connect HOST PORT`` is answered with a socket, or with an
error's text.  When the other end closes, the process ends, and with it the namespace and every interface in it.
"""

from __future__ import annotations

import socket


def main() -> None:
    door = socket.socket(fileno=0)
    door.send(b"ready")
    while request := door.recv(1000).decode():
        verb, host, port = request.split()
        try:
            at = host, int(port)
            with socket.create_server(at) if verb == "listen" else socket.create_connection(at) as opened:
                socket.send_fds(door, [b"open"], [opened.fileno()])
        except OSError as error:
            door.send(str(error).encode())


if __name__ == "__main__":
    main()
