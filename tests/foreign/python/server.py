"""A server of the contract in tests/wire/README.md on `asgi-idempotency-header`, with its store on Redis."""
import argparse
import asyncio
import os
import signal
import socket
import uuid

import redis.asyncio
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from idempotency_header_middleware import IdempotencyHeaderMiddleware
from idempotency_header_middleware.backends import RedisBackend

ROUTES = {
    "/replay": ["POST", "PATCH", "GET", "PUT"],
    "/optional": ["POST"],
    "/unchecked": ["POST"],
    "/nested/pay/run": ["POST"],
    "/nested/refund/run": ["POST"],
}

executions = {}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--store", required=True)
    parser.add_argument("--namespace", default="conformance")
    parser.add_argument("--retention-ms", type=int, default=86_400_000)
    parser.add_argument("--effects")
    return parser.parse_known_args()[0]


def instructions(header):
    told = {"set": []}
    for item in filter(None, header.split(";")):
        name, _, value = item.partition("=")
        if name == "set":
            told["set"].append(value.split(":", 1))
        else:
            told[name] = int(value or 0)
    return told


def count(options, route, key):
    name = f"{route} {key}"
    executions[name] = executions.get(name, 0) + 1
    if options.effects:
        with open(options.effects, "ab", buffering=0) as effects:
            effects.write(f"{name} {os.getpid()}\n".encode())
    return executions[name]


def handler(options, route):
    async def handle(request: Request):
        key = request.headers.get("idempotency-key", "")
        body = await request.body()
        execution = count(options, route, key)
        told = instructions(request.headers.get("x-do", ""))
        await asyncio.sleep(told.get("delay", 0) / 1000)
        if "panic" in told:
            raise RuntimeError("told to panic")
        status = 500 if execution <= told.get("fail-first", 0) else told.get("status", 201)
        response = answer(told, {"execution": execution, "key": key, "echo": body.decode(errors="replace")})
        response.status_code = status
        response.headers["X-Execution"] = str(uuid.uuid4())
        for name, value in told["set"]:
            if name.lower() == "content-type":
                response.headers[name] = value
            else:
                response.headers.append(name, value)
        return response

    return handle


def answer(told, report):
    if "empty" in told:
        return Response()
    if "size" in told:
        return PlainTextResponse("x" * told["size"])
    if "stream" in told or "drip" in told:
        return StreamingResponse(chunks(told), media_type="text/plain")
    if "break" in told:
        return StreamingResponse(broken(), media_type="text/plain")
    return JSONResponse(report)


async def chunks(told):
    pause = 0.1 if "drip" in told else 0
    for _ in range(told.get("stream") or -(-told["drip"] // 100)):
        yield b"x" * 1024
        await asyncio.sleep(pause)


async def broken():
    yield b"x" * 1024
    raise RuntimeError("told to break")


def application(options):
    app = FastAPI()
    store = redis.asyncio.from_url(options.store)
    backend = RedisBackend(
        store,
        keys_key=f"{options.namespace}-keys",
        response_key=f"{options.namespace}-responses",
        expiry=max(1, options.retention_ms // 1000),
    )
    app.add_middleware(IdempotencyHeaderMiddleware, backend=backend)
    app.add_api_route("/executions", lambda: executions, methods=["GET"])
    for route, methods in ROUTES.items():
        app.add_api_route(route, handler(options, route), methods=methods)
    return app


def main():
    options = arguments()
    host, port = options.listen.rsplit(":", 1)
    listener = socket.create_server((host, int(port)))
    # Uvicorn ends what runs, and then raises the signal again for whoever handles it.
    signal.signal(signal.SIGTERM, lambda *_: None)
    print(f"listening on http://{host}:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(application(options), log_level="warning", timeout_graceful_shutdown=5)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
