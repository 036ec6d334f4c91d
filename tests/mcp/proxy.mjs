// proxy.mjs URL TOKENFILE: passes requests on with the token added, for clients that cannot send
// one. Host and Origin stay as they came. Prints its port.
import { readFileSync } from 'node:fs';
import http from 'node:http';

const to = new URL(process.argv[2]);
const token = readFileSync(process.argv[3], 'utf8').split('\n')[0].trim();
const server = http.createServer((q, a) => {
  const pass = http.request({ host: to.hostname, port: to.port, path: q.url, method: q.method,
    headers: { ...q.headers, authorization: `Bearer ${token}` } }, (r) => {
    a.writeHead(r.statusCode, r.headers);
    r.pipe(a);
  });
  pass.on('error', () => a.destroy());
  a.on('close', () => pass.destroy());
  q.pipe(pass);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
