"""A server of the contract in tests/wire/README.md on nothing but Python's standard library, for one process."""
import argparse
import http.server
import json
import os
import re
import signal
import threading
import time
import traceback
import urllib.parse
import uuid

from contract import DROPPED, Refused, Store, caller, checked, fingerprint, header_key, remembered

LIMIT = 2 * 1024 * 1024
KEPT = 2 * LIMIT

ROUTES = {
    "/replay": {"methods": ("POST", "PATCH")},
    "/optional": {"optional": True},
    "/strict": {"strict": True},
    "/reject": {"reject": True},
    "/wait": {"wait": 5},
    "/everything": {"keep": "everything"},
    "/final": {"keep": "final"},
    "/scoped": {"scope": "X-User"},
    "/json": {"fingerprint": "json"},
    "/unchecked": {"fingerprint": "off"},
    "/small": {"limit": 1024, "kept": 1024},
    "/resubmit": {"content": True, "optional_scope": "X-User", "reject": True, "retention": 2},
    "/nested/pay/run": {},
    "/nested/refund/run": {},
    "/put": {"methods": ("PUT", "DELETE")},
    "/legacy": {"methods": ("GET",), "query": "request_id"},
    "/orders/{id}/pay": {"path": True},
}
PATTERNS = {route: re.compile(route.replace("{id}", "([^/]+)")) for route in ROUTES}
executions, counting = {}, threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/executions":
            return self.answer(200, [("Content-Type", "application/json")], json.dumps(executions).encode())
        found = [(route, match) for route, pattern in PATTERNS.items() if (match := pattern.fullmatch(path))]
        if not found:
            return self.answer(404, [], b"")
        try:
            self.serve(*found[0])
        except Refused as refused:
            again = [("Retry-After", "1")] if refused.name in ("request-in-progress", "store-full") else []
            problem = {"type": f"about:blank#{refused.name}", "title": refused.name, "status": refused.status}
            problem["detail"] = "The request was refused."
            fields = [("Content-Type", "application/problem+json"), ("Cache-Control", "no-store"), *again]
            self.answer(refused.status, fields, json.dumps(problem).encode())

    do_POST = do_PATCH = do_PUT = do_DELETE = do_GET

    def serve(self, route, match):
        if "close" in self.headers.get("connection", "").lower():
            self.close_connection = True
        policy = ROUTES[route]
        self.target, self.method = self.path, self.command
        self.media_type = self.headers.get("content-type", "").split(";")[0].strip().lower()
        key = scope = None
        protected = self.command in policy.get("methods", ("POST",))
        if protected and not policy.get("content"):
            key = self.key(policy, match)
            if key is None and not policy.get("optional"):
                raise Refused(400, "key-missing")
        if "scope" in policy and (scope := self.headers.get(policy["scope"])) is None:
            raise Refused(400, "scope-missing")
        self.body = self.read(policy.get("limit", LIMIT))
        if not protected or (key is None and not policy.get("content")):
            return self.send(*self.run(route, ""))
        content = fingerprint(self, policy.get("fingerprint"))
        if policy.get("content"):
            key, scope = content.hex(), self.headers.get(policy["optional_scope"], caller(self.headers))
        self.protected(route, policy, key, scope, content)

    def protected(self, route, policy, key, scope, content):
        who = () if scope is not None else caller(self.headers)
        name = (route, scope, key)
        record = self.server.store.claim(name, who, content, policy.get("wait", 0))
        if record.state == "settled":
            if policy.get("reject"):
                raise Refused(409, "duplicate-request")
            if record.answer is None:
                raise Refused(409, "response-not-retained")
            status, fields, *rest = record.answer
            return self.send(status, [*fields, ("Idempotent-Replayed", "true")], *rest)
        try:
            answer = self.run(route, key, record.attempt)
        except Exception:
            traceback.print_exc()
            failed = [("Content-Type", "application/problem+json")]
            problem = json.dumps({"type": "about:blank#handler-failed", "title": "failed", "status": 500}).encode()
            answer = (500, failed, problem, None, False)
        status, fields, body, trailers, broken = answer
        outcome = remembered(policy.get("keep"), status, who)
        kept = [(field, value) for field, value in fields if field.lower() not in DROPPED]
        too_long = broken or len(body) > policy.get("kept", KEPT)
        store = self.server.store
        if outcome == "settled":
            store.settle(name, record, None if too_long else (status, kept, body, trailers, False), policy.get("retention"))
        elif outcome == "undone":
            store.undo(name, record)
        else:
            store.release(name, record)
        self.send(*answer)

    def key(self, policy, match):
        if "query" in policy:
            query = urllib.parse.parse_qs(self.path.partition("?")[2], keep_blank_values=True)
            return checked(query[policy["query"]][0]) if policy["query"] in query else None
        if "path" in policy:
            return checked(urllib.parse.unquote(match[1]))
        return header_key(self.headers.get_all("Idempotency-Key"), policy.get("strict"))

    def read(self, limit):
        whole = b""
        for piece in self.pieces():
            whole += piece if len(whole) <= limit else b""
        if len(whole) > limit:
            raise Refused(413, "body-too-large")
        return whole

    def pieces(self):
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int(self.exactly().split(b";")[0], 16):
                yield self.exactly(size)
                self.exactly()
            while self.rfile.readline().strip():
                pass
            return
        left = int(self.headers.get("content-length", 0))
        while left:
            piece = self.exactly(min(left, 65536))
            left -= len(piece)
            yield piece

    def exactly(self, size=None):
        """So many bytes, or a line."""
        data = self.rfile.readline() if size is None else self.rfile.read(size)
        if not data or size is not None and len(data) < size:
            raise ConnectionError("the client left")
        return data

    def run(self, route, key, attempt=0):
        """The handler: status, fields, body, trailers, and whether the body breaks."""
        number = count(self.server.options, route, key)
        told = instructions(self.headers.get("x-do", ""))
        time.sleep(told.get("delay", 0) / 1000)
        if "panic" in told:
            raise RuntimeError("told to panic")
        fields = [("X-Execution", str(uuid.uuid4()))]
        report = {"execution": number, "key": key, "attempt": attempt, "echo": self.body.decode(errors="replace")}
        body, media_type = json.dumps(report).encode(), "application/json"
        lines = told.get("stream") or (1 if "break" in told or "trailers" in told else None)
        if "empty" in told:
            body, media_type = b"", None
        elif "size" in told:
            body, media_type = b"x" * told["size"], "text/plain"
        elif lines:
            body, media_type = b"x" * 1024 * lines, "text/plain"
        own = [value for name, value in told["set"] if name.lower() == "content-type"]
        if own or media_type:
            fields.append(("Content-Type", own[0] if own else media_type))
        fields += [field for field in told["set"] if field[0].lower() != "content-type"]
        status = 500 if number <= told.get("fail-first", 0) else told.get("status", 201)
        trailers = {"x-checksum": "abc"} if "trailers" in told else None
        return status, fields, body, trailers, "break" in told

    def send(self, status, fields, body, trailers, broken):
        if trailers is None and not broken:
            return self.answer(status, fields, body)
        self.head(status, [*fields, ("Transfer-Encoding", "chunked"), ("Trailer", ", ".join(trailers or []))])
        self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))
        if broken:
            self.close_connection = True
            return
        lines = "".join(f"{name}: {value}\r\n" for name, value in trailers.items())
        self.wfile.write(f"0\r\n{lines}\r\n".encode())

    def answer(self, status, fields, body):
        length = [] if status == 204 else [("Content-Length", str(len(body)))]
        self.head(status, [*fields, *length])
        self.wfile.write(body)

    def head(self, status, fields):
        self.send_response_only(status)
        if not any(name.lower() == "date" for name, _ in fields):
            self.send_header("Date", self.date_time_string())
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_):
        pass


def instructions(header):
    told = {"set": []}
    for item in filter(None, header.split(";")):
        name, _, value = item.partition("=")
        if name == "set":
            told["set"].append(tuple(value.split(":", 1)))
        else:
            told[name] = int(value or 0)
    return told


def count(options, route, key):
    name = f"{route} {key}"
    with counting:
        executions[name] = executions.get(name, 0) + 1
        if options.effects:
            with open(options.effects, "ab", buffering=0) as effects:
                effects.write(f"{name} {os.getpid()}\n".encode())
        return executions[name]


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--retention-ms", type=int, default=86_400_000)
    parser.add_argument("--capacity", type=int, default=1_000_000)
    parser.add_argument("--effects")
    options = parser.parse_known_args()[0]
    host, port = options.listen.rsplit(":", 1)
    server = Server((host, int(port)), Handler)
    server.options, server.store = options, Store(options.capacity, options.retention_ms / 1000)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"listening on http://{host}:{server.server_address[1]}", flush=True)
    server.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main()
