#!/usr/bin/python3
"""A worker: HTTP/1.1 over a Unix socket.

    worker_http.py SOCKET

One process answers one request at a time. It keeps any number of connections open meanwhile, so that somebody who
only looks whether it is there does not wait for somebody else's connection to end.
"""

import io
import os
import selectors
import socket
import sys
from urllib.parse import unquote

from page import application

HEAD_BYTES_MAX = 64 << 10
BODY_BYTES_MAX = 16 << 20


def read_request(connection):
    """Returns the environment of the next request of this connection, or None if there is none."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(16384)
        if not piece or len(received) > HEAD_BYTES_MAX:
            return None
        received += piece
    head, body = received.split(b"\r\n\r\n", 1)
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, protocol = first.split(" ", 2)
    path, _, query = target.partition("?")
    environ = {"REQUEST_METHOD": method, "PATH_INFO": unquote(path, "latin-1"), "QUERY_STRING": query}
    environ |= {"SCRIPT_NAME": "", "SERVER_NAME": "localhost", "SERVER_PORT": "80", "SERVER_PROTOCOL": protocol}
    for line in lines:
        name, _, value = line.partition(":")
        environ["HTTP_" + name.upper().replace("-", "_")] = value.strip()
    if "HTTP_TRANSFER_ENCODING" in environ:
        return None  # this worker knows only bodies with a length
    length = int(environ.pop("HTTP_CONTENT_LENGTH", "0"))
    while len(body) < length <= BODY_BYTES_MAX:
        piece = connection.recv(65536)
        if not piece:
            return None
        body += piece
    if len(body) != length:
        return None
    environ |= {"CONTENT_LENGTH": str(length), "CONTENT_TYPE": environ.pop("HTTP_CONTENT_TYPE", "")}
    environ |= {"wsgi.version": (1, 0), "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(body)}
    environ |= {"wsgi.errors": sys.stderr, "wsgi.multithread": False, "wsgi.multiprocess": True}
    return environ | {"wsgi.run_once": False}


def answer(connection):
    """Answers the next request of this connection, and returns whether it stays open."""
    environ = read_request(connection)
    if environ is None:
        return False
    head = []

    def start_response(status, headers, exc_info=None):
        head[:] = [status, headers]

    body = b"".join(application(environ, start_response))
    status, headers = head
    headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
    headers.append(("Content-Length", str(len(body))))
    lines = "".join("%s: %s\r\n" % header for header in headers)
    if environ["REQUEST_METHOD"] == "HEAD":
        body = b""
    connection.sendall(("HTTP/1.1 %s\r\n%s\r\n" % (status, lines)).encode("latin-1") + body)
    closes = environ.get("HTTP_CONNECTION", "").lower() == "close" or environ["SERVER_PROTOCOL"] == "HTTP/1.0"
    return not closes


def main(path):
    if os.path.exists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    ready = selectors.DefaultSelector()
    ready.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is listener:
                ready.register(listener.accept()[0], selectors.EVENT_READ)
                continue
            try:
                stays = answer(key.fileobj)
            except (OSError, ValueError):
                stays = False
            if not stays:
                ready.unregister(key.fileobj)
                key.fileobj.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: worker_http.py SOCKET")
    main(sys.argv[1])
