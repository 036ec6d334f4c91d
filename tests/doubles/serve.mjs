// serve.mjs: what the doubles share: a loopback server that ends with its parent, bodies, JSON.
//
// A double prints "port N" when it listens and ends when its standard input does: a test that is
// killed leaves nothing behind. Nothing here knows a provider.
import http from 'node:http';

export async function body(req, max = 1 << 30) {
  const parts = [];
  let size = 0;
  for await (const part of req) {
    size += part.length;
    if (size > max) throw new Fail(413, 'body too large');
    parts.push(part);
  }
  return Buffer.concat(parts);
}

export class Fail extends Error {
  constructor(status, message, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export function json(res, status, value) {
  const text = value === undefined ? '' : JSON.stringify(value);
  res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
  res.end(text);
}

// --name value ... -> { name: value }
export function options(argv = process.argv.slice(2)) {
  const found = {};
  for (let i = 0; i < argv.length; i += 2) found[argv[i].replace(/^--/, '')] = argv[i + 1];
  return found;
}

const plain = (each) => http.createServer({ keepAliveTimeout: 60000 }, each);

// make: the kind of server, from its request handler; hello: how it says where it listens.
export function serve(handle, atEnd, make = plain, hello = (port) => `port ${port}`) {
  const server = make((req, res) => {
    req.on('error', () => {});
    res.on('error', () => {});
    Promise.resolve(handle(req, res)).catch((e) => {
      if (!(e instanceof Fail)) console.error(e);
      if (res.headersSent) return res.destroy();
      json(res, e.status ?? 500, { code: e.code ?? e.status ?? 500, message: e.message });
    });
  });
  server.requestTimeout = 0;
  server.timeout = 0;
  let ending = false;
  const end = async () => {
    if (ending) return;
    ending = true;
    server.close();
    server.closeAllConnections();
    await atEnd();
    process.exit(0);
  };
  process.stdin.on('end', end).on('error', end).resume();
  for (const s of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(s, end);
  server.listen(0, '127.0.0.1', () => console.log(hello(server.address().port)));
  return server;
}
