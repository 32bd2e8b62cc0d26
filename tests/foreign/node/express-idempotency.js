// `express-idempotency`, with its own store in memory, as its documentation connects it.
import { idempotency, getSharedIdempotencyService } from 'express-idempotency';

const routes = {
    '/replay': { methods: ['post', 'patch'] },
    '/optional': {},
    '/json': {},
    '/nested/pay/run': {},
    '/nested/refund/run': {},
    '/put': { methods: ['put', 'delete'] },
};

export function connect() {
    const middleware = idempotency();

    function protect() {
        return (request, response, next) => {
            request.operation = request.get('idempotency-key');
            mark(request, response);
            middleware(request, response, (error) => {
                if (error) return next(error);
                // It goes on after a replay too.
                if (!isHit(request)) next();
            });
        };
    }
    return { protect, routes };
}

function isHit(request) {
    return getSharedIdempotencyService().isHit(request);
}

// It has no header of its own that tells a replay from the first answer.
function mark(request, response) {
    const { send } = response;
    response.send = (body) => {
        if (isHit(request) && response.statusCode < 400) response.set('Idempotent-Replayed', 'true');
        return send.call(response, body);
    };
}
