// An application with long answers, without a framework: what scripts/test-guides puts behind Suimon.
const http = require("http");
const { WebSocketServer } = require("ws");

let thinking = 0, waiting = [];
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function answer(request, response) {
  const { pathname } = new URL(request.url, "http://chat");
  request.resume();
  switch (`${request.method} ${pathname}`) {
    case "GET /health": return response.end("ok");
    case "GET /": case "GET /history":
      if (!/session=/.test(request.headers.cookie ?? "")) {
        response.setHeader("Set-Cookie", `session=${require("crypto").randomBytes(16).toString("hex")}; Path=/; HttpOnly`);
      }
      await wait(20);
      return response.end("Welcome");
    case "GET /thinking": return response.end(`${thinking} thinking, ${waiting.length} polls`);
    case "POST /ask": { // one whole answer, after twelve seconds
      thinking += 1;
      const gone = new Promise((resolve) => response.on("close", resolve));
      await Promise.race([wait(12_000), gone]);
      thinking -= 1;
      return response.end("an answer");
    }
    case "POST /ask/stream": { // the same in pieces
      thinking += 1;
      response.setHeader("Content-Type", "application/x-ndjson");
      for (let piece = 0; piece < 8 && !response.destroyed; piece += 1) {
        response.write(`{"piece":${piece}}\n`);
        await wait(500);
      }
      thinking -= 1;
      return response.end();
    }
    case "GET /poll": { // until somebody writes, 25 s at most
      const written = new Promise((resolve) => waiting.push(resolve));
      response.on("close", () => { waiting = waiting.filter((it) => !it.gone); });
      await Promise.race([written, wait(25_000)]);
      return response.end("news");
    }
    case "POST /write": waiting.splice(0).forEach((tell) => tell()); return response.end("written");
    case "GET /events": {
      response.setHeader("Content-Type", "text/event-stream");
      response.write("data: hello\n\n");
      const timer = setInterval(() => response.write(": still here\n\n"), 15_000);
      return response.on("close", () => clearInterval(timer));
    }
    case "GET /export": {
      const bytes = 20 << 20;
      response.setHeader("Content-Length", bytes);
      return response.end(Buffer.alloc(bytes));
    }
    default: response.statusCode = 404; return response.end("no such page");
  }
}

const server = http.createServer((request, response) => answer(request, response).catch(() => response.destroy()));
new WebSocketServer({ server, path: "/live" }).on("connection", (socket) => socket.on("message", (text) => socket.send(`${text}`)));
server.keepAliveTimeout = 75_000;
server.requestTimeout = 0;
server.listen(8080, "127.0.0.1");
