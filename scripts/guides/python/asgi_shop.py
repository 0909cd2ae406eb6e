"""The same shop in ASGI, without a framework."""

import asyncio
import secrets

PATHS = ("/", "/list", "/cart", "/buy")


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    length, more = 0, True
    while more:
        message = await receive()
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    headers = dict(scope["headers"])
    answer, cookies = (404, "no such page"), []
    if scope["path"] == "/health":
        answer = (200, "ok")
    elif scope["path"] == "/whoami":
        answer = (200, f"{scope['client'][0]} {scope['scheme']} {headers[b'host'].decode()}")
    elif scope["path"] in PATHS:
        await asyncio.sleep(0.02)
        answer = (200, f"Welcome {length}")
        if b"session=" not in headers.get(b"cookie", b""):
            cookies = [(b"set-cookie", f"session={secrets.token_hex(16)}; Path=/; HttpOnly".encode())]
    status, text = answer
    kind = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": status, "headers": kind + cookies})
    await send({"type": "http.response.body", "body": text.encode()})
