// Adds a credential to every request, for clients that cannot show one, and spreads requests over several gateways in
// turn. Everything else goes on as it came: Host, Origin and all.
//   node proxy.mjs PORT KEY GATEWAY[,GATEWAY…]
import http from 'node:http';

const [port, key, gateways] = process.argv.slice(2);
const targets = gateways.split(',').map((gateway) => new URL(gateway));
let turn = 0;

http
  .createServer((request, response) => {
    const target = targets[turn++ % targets.length];
    const headers = { authorization: `Bearer ${key}`, ...request.headers };
    const onward = http.request(
      { host: target.hostname, port: target.port, method: request.method, path: request.url, headers },
      (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      },
    );
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  })
  .listen(Number(port), '127.0.0.1', () => console.log(`proxy on ${port}`));
