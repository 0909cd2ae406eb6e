// The application of slow-clients: what a site has beside its pages. `node app.js` prints the address it listens on.
//
//   GET /page      a page of some two milliseconds of the processor
//   GET /file/N    20 MB, of a declared length
//   GET /poll      an answer after 30 s
//   GET /events    server-sent events, one each 5 s
//   POST /upload   takes what comes and says how many bytes it was
'use strict';
const http = require('http');

const FILE = Buffer.alloc(20 * 1000 * 1000, 'x');
const PAGE_ROUNDS = 20_000;

function page() {
  let mixed = 1;
  for (let round = 0; round < PAGE_ROUNDS; round++) mixed = Math.imul(mixed ^ round, 2654435761);
  return `<!doctype html><title>Page</title><p>${mixed}</p>${'<p>Some words of a page.</p>'.repeat(200)}`;
}

const server = http.createServer((request, response) => {
  const path = request.url;
  if (path === '/page') {
    const headers = { 'Content-Type': 'text/html' };
    if (!request.headers.cookie) headers['Set-Cookie'] = `sid=${Math.random().toString(36).slice(2)}0123456789abcdef; HttpOnly`;
    response.writeHead(200, headers).end(page());
  } else if (path.startsWith('/file/')) {
    response.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': FILE.length }).end(FILE);
  } else if (path === '/poll') {
    setTimeout(() => response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}'), 30_000);
  } else if (path === '/events') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('data: 0\n\n');
    const timer = setInterval(() => response.write('data: more\n\n'), 5_000);
    response.on('close', () => clearInterval(timer));
  } else if (path === '/upload' && request.method === 'POST') {
    let bytes = 0;
    request.on('data', piece => { bytes += piece.length; });
    request.on('end', () => response.writeHead(200, { 'Content-Type': 'text/plain' }).end(`${bytes}`));
  } else {
    response.writeHead(404).end();
  }
});
server.requestTimeout = 0;
server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
