"""The page of the shop as a WSGI application, the same for gunicorn, uWSGI, our workers, and CGI.

A resident worker connects to the database and loads its template once, when this module is imported. Under CGI both
happen for every request.
"""

import hashlib
import html
import os
from urllib.parse import parse_qs

import psycopg2

# The query, with so much waiting in it on average as if the database were busy elsewhere: now less, now more, as
# equal waits let all workers run in step.
ITEMS = """SELECT id, name, price_cents, stock FROM items, pg_sleep(-ln(1 - random()) * %(wait_ms)s::float8 / 1000)
    WHERE id BETWEEN %(first)s AND %(first)s + 19 ORDER BY id"""
WORK = max(1, int(os.environ.get("SHOP_WORK", "1")))
WAIT_MS = os.environ.get("SHOP_WAIT_MS", "0")

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "template.html"), encoding="utf-8") as file:
    TEMPLATE = file.read()


def connect():
    """Returns a connection to the database, or None."""
    try:
        database = psycopg2.connect(os.environ["SHOP_DATABASE"])
        database.autocommit = True
        return database
    except psycopg2.OperationalError:
        return None


database = connect()


def items(first):
    """Returns the rows, or None. A connection that broke since the last request is made anew, once."""
    global database
    for _ in range(2):
        database = database or connect()
        if database is None:
            return None
        try:
            with database.cursor() as cursor:
                cursor.execute(ITEMS, {"first": first, "wait_ms": WAIT_MS})
                return cursor.fetchall()
        except psycopg2.Error:
            database = None
    return None


def table(found):
    """Returns the rows of the table."""
    rows = []
    for number, name, price_cents, stock in found:
        rows.append(
            "<tr><td>%d</td><td>%s</td><td>%.2f</td><td>%d</td></tr>\n"
            % (number, html.escape(name), price_cents / 100, stock)
        )
    return "".join(rows)


def application(environ, start_response):
    """Answers one request."""
    asked = parse_qs(environ.get("QUERY_STRING", "")).get("page", ["1"])[0]
    page = max(1, min(100, int(asked) if asked.isdecimal() else 1))
    found = items(20 * page - 19)
    if found is None:
        start_response("503 Service Unavailable", [("Content-Type", "text/plain; charset=utf-8")])
        return [b"The database does not answer.\n"]
    # The work of a page is a count and never a time: under contention it stays the same work.
    digest = ""
    for _ in range(WORK):
        rows = table(found)
        digest = hashlib.sha256((digest + rows).encode()).hexdigest()
    body = TEMPLATE.replace("{rows}", rows).replace("{digest}", digest).encode()
    headers = [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body)))]
    start_response("200 OK", headers)
    return [body]
