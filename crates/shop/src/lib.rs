//! The bundled shop: real work on a thread per request, so that the demo needs nothing else.
