"""Every kind of gRPC call through a gateway and without it, by grpcio's own server and client (the C core that C++, Ruby and PHP share).

Usage: calls.py ADDRESS ...    each `plain:HOST:PORT` or `tls:HOST:PORT:CA_FILE`; the server listens on $NODE_PORT
"""

import json
import os
import sys
import threading
import time
from concurrent import futures

import grpc

SERVICE = "interop.Echo"
# Set where the server notices that a call was cancelled.
cancelled = threading.Event()


def unary(request, context):
    if request == b"deadline":
        while context.is_active():
            time.sleep(0.01)
        return b""
    if request == b"cancel":
        context.add_callback(cancelled.set)
        while context.is_active():
            time.sleep(0.01)
        return b""
    if request == b"error":
        context.set_trailing_metadata((("x-detail-bin", b"\x00\x01\xff"), ("x-detail", "trailer")))
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not 100 % ready: 水門")
    metadata = dict(context.invocation_metadata())
    context.set_trailing_metadata((("x-seen", metadata.get("x-sent", "")),))
    return request


def server_stream(request, context):
    if request == b"endless":
        context.add_callback(cancelled.set)
        while context.is_active():
            yield b"tick"
            time.sleep(0.01)
        return
    for index in range(int(request)):
        yield b"%d" % index


def client_stream(requests, context):
    return b"%d" % sum(len(request) for request in requests)


def both(requests, context):
    for request in requests:
        yield request


def serve(port):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=32), options=[("grpc.max_receive_message_length", 64 << 20)])
    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "ServerStream": grpc.unary_stream_rpc_method_handler(server_stream),
        "ClientStream": grpc.stream_unary_rpc_method_handler(client_stream),
        "Both": grpc.stream_stream_rpc_method_handler(both),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server


def until(event):
    return event.wait(10)


class Cases:
    """One channel, and what is called by it. Each case raises where it does not hold."""

    def __init__(self, channel):
        self.unary = channel.unary_unary(f"/{SERVICE}/Unary")
        self.server_stream = channel.unary_stream(f"/{SERVICE}/ServerStream")
        self.client_stream = channel.stream_unary(f"/{SERVICE}/ClientStream")
        self.both = channel.stream_stream(f"/{SERVICE}/Both")

    def unary_with_metadata(self):
        answer, call = self.unary.with_call(b"hello", metadata=(("x-sent", "there and back"),), timeout=10)
        assert answer == b"hello"
        assert dict(call.trailing_metadata())["x-seen"] == "there and back"

    def unary_of_4_mib(self):
        sent = os.urandom(4 << 20)
        call = self.client_stream(iter([sent]), timeout=20)
        assert call == b"%d" % len(sent), call

    def server_streaming(self):
        assert [int(x) for x in self.server_stream(b"1000", timeout=10)] == list(range(1000))

    def client_streaming(self):
        assert self.client_stream((b"x" * 1000 for _ in range(1000)), timeout=10) == b"1000000"

    def bidirectional(self):
        sent = threading.Semaphore(1)

        def requests():
            for index in range(100):
                # Each waits for the answer to the one before it.
                assert sent.acquire(timeout=10)
                yield b"%d" % index

        for index, answer in enumerate(self.both(requests(), timeout=20)):
            assert int(answer) == index
            sent.release()
        assert index == 99

    def error_with_trailers(self):
        try:
            self.unary(b"error", timeout=10)
            raise AssertionError("no error came")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.FAILED_PRECONDITION, error
            assert error.details() == "not 100 % ready: 水門", error.details()
            trailers = dict(error.trailing_metadata())
            assert trailers["x-detail-bin"] == b"\x00\x01\xff" and trailers["x-detail"] == "trailer", trailers

    def unknown_method(self, channel):
        try:
            channel.unary_unary("/interop.Echo/Nothing")(b"", timeout=10)
            raise AssertionError("no error came")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error

    def deadline(self):
        began = time.monotonic()
        try:
            self.unary(b"deadline", timeout=0.5)
            raise AssertionError("no error came")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
            assert time.monotonic() - began < 5

    def cancelled_before_its_answer(self):
        cancelled.clear()
        call = self.unary.future(b"cancel", timeout=30)
        time.sleep(0.2)
        call.cancel()
        assert until(cancelled), "the server was never told"

    def cancelled_in_a_stream(self):
        cancelled.clear()
        call = self.server_stream(b"endless", timeout=30)
        assert next(call) == b"tick"
        call.cancel()
        assert until(cancelled), "the server was never told"

    def many_at_once(self):
        calls = [self.unary.future(b"%d" % index, timeout=20) for index in range(200)]
        assert [int(call.result()) for call in calls] == list(range(200))


def channel(address):
    kind, rest = address.split(":", 1)
    options = [("grpc.max_receive_message_length", 64 << 20)]
    if kind == "plain":
        return grpc.insecure_channel(rest, options=options)
    host, port, ca_file = rest.split(":", 2)
    with open(ca_file, "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    return grpc.secure_channel(f"{host}:{port}", credentials, options=options)


def main():
    server = serve(os.environ["NODE_PORT"])
    results, failed = {}, 0
    for address in sys.argv[1:]:
        with channel(address) as it:
            cases = Cases(it)
            for name in [name for name in vars(Cases) if not name.startswith("_")]:
                case = getattr(cases, name)
                try:
                    case(it) if name == "unknown_method" else case()
                    outcome = "ok"
                except Exception as error:  # every way in which a call can fail is a result here
                    outcome, failed = f"{type(error).__name__}: {str(error)[:300]}", failed + 1
                results.setdefault(name, {})[address.rsplit(":", 1)[0] if address.startswith("tls") else address] = outcome
                print(f"{address.split(':')[0]:6} {name:28} {outcome}", flush=True)
    server.stop(0)
    out = os.environ.get("RESULT")
    if out:
        with open(out, "w") as file:
            json.dump({"grpcio": grpc.__version__, "results": results}, file, indent=1)
            file.write("\n")
    sys.exit(1 if failed else 0)


main()
