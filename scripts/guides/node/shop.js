// A shop of four pages, each 20 ms: what scripts/test-guides puts behind Suimon.
const express = require("express");
const session = require("express-session");

const app = express();
app.set("trust proxy", "loopback");
app.get("/health", (request, response) => response.send("ok"));
app.get("/whoami", (request, response) => response.send(`${request.ip} ${request.protocol} ${request.host}`));
app.use(session({ secret: require("crypto").randomBytes(32).toString("hex"), resave: false, saveUninitialized: false }));
app.use(express.raw({ type: () => true, limit: "10mb" }));
app.all(["/", "/list", "/cart", "/buy"], (request, response) => {
  request.session.seen = request.path;
  setTimeout(() => response.send(`Welcome ${request.body?.length ?? 0}`), 20);
});
module.exports = app;
