"""The rules of the contract in tests/wire/README.md, for one process: keys, callers, fingerprints, and the life of a record."""
import dataclasses
import decimal
import hashlib
import json
import re
import threading
import time

KEY_BYTES = 255
CREDENTIALS = (
    "authorization", "x-api-key", "api-key", "apikey", "x-auth-token", "x-access-token", "private-token",
    "ocp-apim-subscription-key", "x-forwarded-user", "x-auth-request-user", "remote-user", "x-amzn-oidc-identity",
    "x-goog-authenticated-user-id", "cf-access-authenticated-user-email",
)
NO_SESSION = re.compile(
    r"_ga|_ga_.*|_gid|_gcl_.*|_fbp|_hj.*|_clck|_clsk|AWSALB|AWSALBCORS|AWSALBTG|AWSALBTGCORS|__cf_bm|__cflb|cf_clearance"
    r"|_cfuvid|ARRAffinity.*|OptanonConsent|XSRF-TOKEN|csrftoken|_csrf|csrf_token")
# Not kept for a replay.
DROPPED = {
    "connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade", "content-length", "set-cookie",
    "www-authenticate", "date", "age",
}
# Of the 4xx, those that a client may cure by trying again.
NOT_FINAL = {401, 403, 408, 412, 413, 415, 421, 423, 424, 425, 426, 428, 429, 431}
STRING = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
PARAMETERS = re.compile(r'(?:; *[a-z*][a-z0-9_.*-]*(?:=(?:"(?:[ !#-\[\]-~]|\\["\\])*"|\?[01]|[^\s";,]+))?)*')


class Refused(Exception):
    """A refusal: the status, and the name of its problem."""

    def __init__(self, status, name):
        super().__init__(name)
        self.status, self.name = status, name


def header_key(values, strict):
    """The key in the lines of a header field, or None if there is none."""
    if not values:
        return None
    value = values[0].strip(" ") if len(values) == 1 else ""
    if quoted := STRING.match(value):
        if PARAMETERS.fullmatch(value[quoted.end():]):
            return checked(re.sub(r"\\(.)", r"\1", quoted[1]))
    elif not strict and re.fullmatch(r"[!#-+\--:<-\[\]-~]+", value):
        return checked(value)
    raise Refused(400, "key-invalid")


def checked(key):
    if not 1 <= len(key.encode()) <= KEY_BYTES or any(ord(c) < 32 or ord(c) == 127 for c in key):
        raise Refused(400, "key-invalid")
    return key


def caller(headers):
    """The credentials of a request."""
    found = [(name, value) for name in CREDENTIALS for value in headers.get_all(name, [])]
    bearer = [value for name, value in found if name == "authorization"]
    says_who = any(not re.fullmatch(r"(?i)|basic .*|bearer *(null|undefined)?", value) for value in bearer)
    if not says_who:
        pairs = {pair.strip() for line in headers.get_all("cookie", []) for pair in line.split(";")} - {""}
        found += sorted(("cookie", pair) for pair in pairs if not NO_SESSION.fullmatch(pair.split("=")[0]))
    return tuple(found)


def fingerprint(request, kind):
    if kind == "off":
        return None
    if kind == "json":
        try:
            value = json.loads(request.body, parse_float=decimal.Decimal, parse_int=decimal.Decimal)
        except ValueError:
            raise Refused(400, "body-invalid") from None
        content = repr(canonical(value))
    else:
        content = request.body
        boundary = re.search(r'boundary="?([^";]+)', request.headers.get("content-type", ""))
        if request.media_type == "multipart/form-data" and boundary:
            content = content.replace(boundary[1].encode(), b"")
    coding = request.headers.get("content-encoding", "")
    parts = (request.method, request.target, request.media_type, coding, content)
    return hashlib.sha256(repr(parts).encode()).digest()


def canonical(value):
    if isinstance(value, dict):
        return {name: canonical(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [canonical(item) for item in value]
    return value.normalize() + 0 if isinstance(value, decimal.Decimal) else value


@dataclasses.dataclass
class Record:
    caller: tuple
    fingerprint: bytes | None
    state: str = "running"
    attempt: int = 1
    expires: float = float("inf")
    # What an undone claim leaves.
    before: "Record | None" = None
    # Nothing is kept of an answer that was too long, or broke.
    answer: tuple | None = None


class Store:
    """Records by key. A handler runs in this process, and so a claim cannot outlive its runner."""

    def __init__(self, capacity, retention):
        self.capacity, self.retention = capacity, retention
        self.records, self.changed = {}, threading.Condition()

    def claim(self, key, who, content, wait):
        """Grants a new record, or returns the settled one."""
        deadline = time.monotonic() + wait
        with self.changed:
            while True:
                record = self.judge(key, who, content)
                if record is None or record.state == "settled":
                    return record or self.grant(key, who, content)
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Refused(409, "request-in-progress")
                self.changed.wait(left)

    def judge(self, key, who, content):
        record = self.records.get(key)
        if record is None or record.expires <= time.monotonic():
            return None
        if record.state == "released":
            if record.caller not in ((), who):
                raise Refused(422, "other-caller")
            return None
        if record.caller != who:
            raise Refused(422, "other-caller")
        if record.fingerprint != content:
            raise Refused(422, "key-reused")
        return record

    def grant(self, key, who, content):
        now = time.monotonic()
        before = self.records.get(key)
        if before is not None and before.expires <= now:
            before = None
        if before is None and len(self.records) >= self.capacity:
            self.make_room(now)
        record = Record(who, content, attempt=1 + (before.attempt if before else 0), before=before)
        self.records[key] = record
        return record

    def make_room(self, now):
        gone = [key for key, record in self.records.items() if record.state == "released" or record.expires <= now]
        for key in gone:
            del self.records[key]
        if len(self.records) >= self.capacity:
            raise Refused(503, "store-full")

    def settle(self, key, record, answer, retention):
        self.end(key, record, "settled", retention or self.retention, answer)

    def release(self, key, record):
        self.end(key, record, "released", self.retention)

    def undo(self, key, record):
        with self.changed:
            if record.before:
                self.records[key] = record.before
            else:
                del self.records[key]
            self.changed.notify_all()

    def end(self, key, record, state, keep, answer=None):
        with self.changed:
            record.state, record.answer, record.before = state, answer, None
            record.expires = time.monotonic() + keep
            self.changed.notify_all()


def remembered(policy, status, who):
    """What becomes of a claim whose handler answered: settled, released, or undone."""
    if policy == "everything":
        return "released" if status in (401, 407) and not who else "settled"
    if status in (401, 407, 429):
        return "undone"
    is_final = policy == "final" and 400 <= status < 500 and status not in NOT_FINAL
    return "settled" if status < 400 or is_final else "released"
