// `@node-idempotency/core`, with its store on Redis, as its documentation connects it: `onRequest` before the handler,
// `onResponse` with each answer.
import { Idempotency, IdempotencyErrorCodes as Code } from '@node-idempotency/core';
import { RedisStorageAdapter } from '@node-idempotency/storage-adapter-redis';
import { problem } from './handler.js';

const STATUS = {
    [Code.IDEMPOTENCY_FINGERPRINT_MISSMATCH]: 422,
    [Code.REQUEST_IN_PROGRESS]: 409,
};
const WAITS = { inProgressStrategy: { wait: true, pollingIntervalMs: 50, maxWaitMs: 5000 } };

const routes = {
    '/replay': { methods: ['post', 'patch'] },
    '/optional': { options: { enforceIdempotency: false } },
    '/wait': { options: WAITS },
    '/everything': {},
    '/unchecked': { body: () => undefined },
    '/scoped': { scope: (request) => request.get('x-user') },
    '/json': {},
    '/nested/pay/run': {},
    '/nested/refund/run': {},
    '/put': { methods: ['put', 'delete'] },
    '/legacy': { methods: ['get'], key: (request) => request.query.request_id },
    '/orders/{id}/pay': { key: (request) => request.params.id },
};

export async function connect(flags) {
    const storage = new RedisStorageAdapter({ url: flags.store });
    await storage.connect();
    const idempotency = new Idempotency(storage, {
        enforceIdempotency: true,
        cacheTTLMS: Number(flags['retention-ms'] ?? 86_400_000),
    });

    function protect(_, { key = (request) => request.get('idempotency-key'), body, scope, options }) {
        return async (request, response, next) => {
            request.operation = key(request);
            if (scope && !scope(request)) return problem(response, 400, 'the scope is missing');
            const asked = {
                method: request.method,
                path: request.path,
                headers: { 'idempotency-key': request.operation },
                body: body ? body(request) : content(request),
                options: { ...options, cacheKeyPrefix: [flags.namespace, scope?.(request)].join(':') },
            };
            let kept;
            try {
                kept = await idempotency.onRequest(asked);
            } catch (error) {
                return problem(response, STATUS[error.code] ?? 400, error.message);
            }
            if (kept) return replay(response, kept);
            record(response, (answer) => idempotency.onResponse(asked, answer));
            next();
        };
    }
    return { protect, routes };
}

function content({ body }) {
    return Buffer.isBuffer(body) ? body.toString() : body;
}

function replay(response, { body, additional: { status, headers } }) {
    response.status(status).set(headers).set('Idempotent-Replayed', 'true').end(Buffer.from(body, 'base64'));
}

// Collects what the handler writes, and has it recorded before its end is sent.
function record(response, done) {
    const { write, end } = response;
    const written = [];
    response.write = (chunk, ...more) => {
        written.push(Buffer.from(chunk));
        return write.call(response, chunk, ...more);
    };
    response.end = (chunk, ...more) => {
        if (chunk) written.push(Buffer.from(chunk));
        const body = Buffer.concat(written).toString('base64');
        const additional = { status: response.statusCode, headers: response.getHeaders() };
        done({ body, additional }).finally(() => end.call(response, chunk, ...more));
        return response;
    };
}
