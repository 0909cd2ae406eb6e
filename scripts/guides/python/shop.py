"""A shop of four pages, each 20 ms: what scripts/test-guides puts behind Suimon."""

import secrets
import time

from flask import Flask, request, session
from werkzeug.middleware.proxy_fix import ProxyFix

app = Flask(__name__)
app.secret_key = secrets.token_hex(32)
app.wsgi_app = ProxyFix(app.wsgi_app, x_for=1, x_proto=1, x_host=1)


@app.get("/health")
def health():
    return "ok"


@app.get("/whoami")
def whoami():
    return f"{request.remote_addr} {request.scheme} {request.host}"


@app.route("/", methods=["GET"])
@app.route("/list", methods=["GET"])
@app.route("/cart", methods=["GET"])
@app.route("/buy", methods=["GET", "POST"])
def page():
    session.setdefault("id", secrets.token_hex(16))
    time.sleep(0.02)
    return f"Welcome {len(request.get_data())}"
