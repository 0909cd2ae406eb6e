"""Settings are sent as the text that they are."""

import schemathesis


@schemathesis.serializer("application/toml")
def toml(ctx, value):
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else str(value)).encode("utf-8", errors="replace")
