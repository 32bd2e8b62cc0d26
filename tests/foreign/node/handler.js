// The handler of every route, as tests/wire/README.md describes it.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

export function problem(response, status, detail) {
    response.status(status).type('application/problem+json').set('Cache-Control', 'no-store');
    response.send(JSON.stringify({ type: 'about:blank', title: 'refused', status, detail }));
}

export function handler(route, count) {
    return async (request, response) => {
        const key = request.operation ?? '';
        const execution = count(route, key);
        const told = instructions(request.get('x-do'));
        if (told.delay) await sleep(told.delay);
        if ('panic' in told) throw new Error('told to panic');

        const failed = execution <= (told['fail-first'] ?? 0);
        response.status(failed ? 500 : (told.status ?? 201)).set('X-Execution', randomUUID());
        for (const [name, value] of told.set) {
            if (name.toLowerCase() === 'content-type') response.set(name, value);
            else response.append(name, value);
        }
        if ('empty' in told) return response.end();
        if (told.size) return response.type('text/plain').send('x'.repeat(told.size));
        if (told.stream) return chunks(response.type('text/plain'), told.stream, 0);
        if (told.drip) return chunks(response.type('text/plain'), Math.ceil(told.drip / 100), 100);
        if ('break' in told) {
            response.type('text/plain').write('x'.repeat(1024));
            await sleep(20);
            return response.destroy();
        }
        if ('trailers' in told) {
            response.type('text/plain').set('Trailer', 'x-checksum').write('x'.repeat(1024));
            response.addTrailers({ 'x-checksum': 'abc' });
            return response.end();
        }
        const echo = 'drain' in told ? '' : (request.bytes ?? Buffer.alloc(0)).toString();
        if (!response.get('content-type')) response.type('json');
        response.send(JSON.stringify({ execution, key, echo }));
    };
}

function instructions(header = '') {
    const told = { set: [] };
    for (const item of header.split(';').filter(Boolean)) {
        const [, name, value] = item.match(/^([^=]+)=?(.*)$/);
        if (name === 'set') told.set.push(value.match(/^([^:]+):(.*)$/).slice(1));
        else told[name] = Number(value);
    }
    return told;
}

async function chunks(response, count, pause) {
    for (let i = 0; i < count; i += 1) {
        response.write('x'.repeat(1024));
        if (pause) await sleep(pause);
    }
    response.end();
}
