// tunnel.mjs: an HTTP proxy, as the variables http_proxy and https_proxy name one.
//
//   node tunnel.mjs [--to PORT]
//
// Plain requests are passed on, CONNECT makes a tunnel; with --to all of them lead there, whatever
// host they name. GET /_tunnel (to the proxy itself) says which hosts were asked for.
import http from 'node:http';
import net from 'node:net';
import { json, options, serve } from './serve.mjs';

const { to } = options();
const asked = [];

function pass(req, res) {
  if (req.url === '/_tunnel') return json(res, 200, { asked });
  const url = new URL(req.url);
  asked.push(`${req.method} ${url.host}`);
  const up = http.request({ host: '127.0.0.1', port: Number(to ?? url.port), method: req.method, path: url.pathname + url.search, headers: req.headers }, (answer) => {
    res.writeHead(answer.statusCode, answer.headers);
    answer.pipe(res);
  });
  up.on('error', () => res.destroy());
  req.pipe(up);
}

const server = serve(pass, async () => {});
server.on('connect', (req, socket, head) => {
  asked.push(`CONNECT ${req.url}`);
  const up = net.connect(Number(to ?? req.url.split(':').pop()), '127.0.0.1', () => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    up.write(head);
    up.pipe(socket).pipe(up);
  });
  for (const s of [up, socket]) s.on('error', () => (up.destroy(), socket.destroy()));
});
