// tls.mjs: a server that speaks TLS in front of one that does not, with a certificate of its own.
//
//   node tls.mjs --to PORT --dir DIR --name NAME
//
// The certificate is for NAME (a DNS name, or IP:ADDRESS) and signed by the authority in DIR
// (ca.pem), which is made when it is not there; the keys live as long as DIR. Needs openssl(1).
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import path from 'node:path';
import { options, serve } from './serve.mjs';

const { to, dir, name } = options();
const at = (file) => path.join(dir, file);
const openssl = (...args) => execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

if (!fs.existsSync(at('ca.pem')))
  openssl('req', '-x509', ...KEY, '-days', '30', '-subj', '/CN=authority of a test', '-keyout', at('ca.key'), '-out', at('ca.pem'));
const file = `server-${process.pid}`;
const san = name.startsWith('IP:') ? name : `DNS:${name}`;
fs.writeFileSync(at(`${file}.ext`), `subjectAltName=${san}\n`);
openssl('req', '-new', ...KEY, '-subj', '/CN=server of a test', '-keyout', at(`${file}.key`), '-out', at(`${file}.csr`));
openssl('x509', '-req', '-in', at(`${file}.csr`), '-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-set_serial', String(process.pid), '-days', '30', '-extfile', at(`${file}.ext`), '-out', at(`${file}.pem`));

function pass(req, res) {
  const up = http.request({ host: '127.0.0.1', port: Number(to), method: req.method, path: req.url, headers: req.headers }, (answer) => {
    res.writeHead(answer.statusCode, answer.headers);
    res.flushHeaders();
    answer.pipe(res);
  });
  up.on('error', () => res.destroy());
  req.pipe(up);
}

serve(pass, async () => {}, (handle) => https.createServer({ key: fs.readFileSync(at(`${file}.key`)), cert: fs.readFileSync(at(`${file}.pem`)), keepAliveTimeout: 60000 }, handle));
