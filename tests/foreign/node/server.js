// A server of the contract in tests/wire/README.md on one of Node's middlewares: node server.js PEER --listen ... --store ...
import fs from 'node:fs';
import express from 'express';
import { handler, problem } from './handler.js';

const [peer, ...rest] = process.argv.slice(2);
const flags = {};
for (let i = 0; i < rest.length; i += 2) flags[rest[i].replace(/^--/, '')] = rest[i + 1];

const { protect, routes } = await import(`./${peer}.js`).then(({ connect }) => connect(flags));
const effects = flags.effects ? fs.openSync(flags.effects, 'a') : undefined;
const executions = new Map();

const app = express();
app.disable('x-powered-by');
app.disable('etag');
app.use(express.json({ limit: '2mb', verify: keep }), express.raw({ type: () => true, limit: '2mb', verify: keep }));

app.get('/executions', (_, response) => response.json(Object.fromEntries(executions)));
for (const [route, { methods = ['post'], ...policy }] of Object.entries(routes)) {
    const path = route.replace('{id}', ':id');
    for (const method of methods) app[method](path, protect(route, policy), handler(route, count));
    // A method that the policy does not protect reaches the handler.
    if (route === '/replay') app.all(path, handler(route, count));
}
app.use((error, request, response, next) => {
    if (response.headersSent) return next(error);
    const status = error.status ?? (response.statusCode >= 400 ? response.statusCode : 500);
    problem(response, status, error.message);
});

// The bytes, which the handler echoes, beside the value, which the middlewares compare.
function keep(request, _, bytes) {
    request.bytes = bytes;
}

function count(route, key) {
    const name = `${route} ${key}`;
    const number = (executions.get(name) ?? 0) + 1;
    executions.set(name, number);
    if (effects !== undefined) fs.writeSync(effects, `${name} ${process.pid}\n`);
    return number;
}

const [host, port] = (flags.listen ?? '127.0.0.1:0').split(':');
const server = app.listen(Number(port), host, () => {
    console.log(`listening on http://${host}:${server.address().port}`);
});
process.on('SIGTERM', () => {
    server.close(() => process.exit(0));
    server.closeIdleConnections();
    setTimeout(() => process.exit(0), 5000).unref();
});
