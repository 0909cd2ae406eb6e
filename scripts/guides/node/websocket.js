// Opens a WebSocket at an address, says something, and prints what comes back.
const { WebSocket } = require("ws");
const socket = new WebSocket(process.argv[2]);
socket.on("open", () => socket.send("echo"));
socket.on("message", (text) => { console.log(`${text}`); socket.close(); });
socket.on("error", (error) => { console.log(`${error}`); process.exit(1); });
