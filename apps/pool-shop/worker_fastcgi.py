#!/usr/bin/python3
"""A worker: FastCGI on the listening descriptor 0, as FastCGI's specification has it.

One process, one connection at a time, one request at a time.
"""

import io
import socket
import struct
import sys

from page import application

BEGIN, END, PARAMS, STDIN, STDOUT, GET_VALUES, GET_VALUES_RESULT = 1, 3, 4, 5, 6, 9, 10
KEEP_CONNECTION = 1
# The longest content of a record that is a multiple of eight.
PIECE = 65528


def read_exactly(stream, length):
    data = stream.read(length)
    if len(data) != length:
        raise EOFError
    return data


def read_record(stream):
    """Returns the kind, the request's number and the content of the next record."""
    _, kind, number, length, padding = struct.unpack("!BBHHBx", read_exactly(stream, 8))
    content = read_exactly(stream, length)
    read_exactly(stream, padding)
    return kind, number, content


def record(kind, number, content=b""):
    return struct.pack("!BBHHBx", 1, kind, number, len(content), 0) + content


def pairs(data):
    """Returns the names and values of a stream of parameters."""
    found, at = {}, 0

    def length():
        nonlocal at
        size = 1 if data[at] < 128 else 4
        value = int.from_bytes(data[at : at + size], "big") & 0x7FFFFFFF
        at += size
        return value

    while at < len(data):
        name, value = length(), length()
        found[data[at : at + name].decode("latin-1")] = data[at + name : at + name + value].decode("latin-1")
        at += name + value
    return found


def answer(environ, body):
    """Returns what the application answers, as CGI output."""
    environ |= {"wsgi.version": (1, 0), "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(body)}
    environ |= {"wsgi.errors": sys.stderr, "wsgi.multithread": False, "wsgi.multiprocess": True}
    environ |= {"wsgi.run_once": False}
    head = []

    def start_response(status, headers, exc_info=None):
        head[:] = ["Status: %s\r\n" % status] + ["%s: %s\r\n" % header for header in headers]

    body = b"".join(application(environ, start_response))
    return "".join(head).encode("latin-1") + b"\r\n" + body


def serve(stream):
    """Answers the requests of one connection, until it ends."""
    keep = True
    while keep:
        number, flags, params, body = 0, 0, b"", b""
        while True:
            kind, of, content = read_record(stream)
            if kind == BEGIN:
                number, flags = of, content[2]
            elif kind == PARAMS:
                params += content
            elif kind == STDIN and content:
                body += content
            elif kind == STDIN:
                break
            elif kind == GET_VALUES:
                stream.write(record(GET_VALUES_RESULT, 0, b"\x0f\x01FCGI_MPXS_CONNS0"))
                stream.flush()
        output = answer(pairs(params), body)
        for at in range(0, len(output), PIECE):
            stream.write(record(STDOUT, number, output[at : at + PIECE]))
        stream.write(record(STDOUT, number) + record(END, number, bytes(8)))
        stream.flush()
        keep = flags & KEEP_CONNECTION


def main():
    listener = socket.socket(fileno=0)
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rwb") as stream:
            try:
                serve(stream)
            except (EOFError, OSError):
                pass  # the other side has left


if __name__ == "__main__":
    main()
