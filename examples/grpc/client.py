#!/usr/bin/env python3
"""A client of the transfers with the retry policy of gRPC. It needs the package `grpcio`.

    client.py TARGET KEY ACCOUNT AMOUNT [--deadline SECONDS] [--cancel-after SECONDS] [--until SECONDS]

The policy repeats a call whose connection broke or that is running elsewhere, with the same key. With --until the program
does it too, after the policy has given up. It prints the status code, and after OK the number of the transfer, the attempt
that made it, whether the answer was a replay, and how often the program has called.
"""
import argparse
import json
import sys
import threading
import time

import grpc

SERVICE_CONFIG = {
    "methodConfig": [{
        "name": [{"service": "bank.v1.Transfers"}],
        "retryPolicy": {
            "maxAttempts": 5,
            "initialBackoff": "0.05s",
            "maxBackoff": "1s",
            "backoffMultiplier": 2,
            "retryableStatusCodes": ["UNAVAILABLE", "ABORTED"],
        },
    }]
}
# What no try can change.
FINAL = {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "FAILED_PRECONDITION",
         "OUT_OF_RANGE", "UNIMPLEMENTED", "UNAUTHENTICATED", "DATA_LOSS"}


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def transfer(to, amount):
    """A `Transfer` as Protocol Buffers have it, so that nothing has to be generated."""
    return b"\x0a" + varint(len(to)) + to.encode() + b"\x10" + varint(amount)


def receipt(data):
    """The fields of a `Receipt`, by their numbers: all are integers."""
    fields, at, numbers = {}, 0, []
    while at < len(data):
        number = shift = 0
        while True:
            number |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 0x80:
                break
        numbers.append(number)
    for tag, value in zip(numbers[::2], numbers[1::2]):
        fields[tag >> 3] = value
    return fields.get(1, 0), fields.get(2, 0)


def call(channel, options):
    """Calls once. Returns the code and, after OK, what is printed of it."""
    create = channel.unary_unary("/bank.v1.Transfers/Create", lambda message: message, receipt)
    metadata = [("idempotency-key", options.key), ("authorization", "Bearer ann")]
    message = transfer(options.account, options.amount)
    future = create.future(message, metadata=metadata, timeout=options.deadline)
    if options.cancel_after is not None:
        threading.Timer(options.cancel_after, future.cancel).start()
    try:
        number, attempt = future.result()
    except grpc.FutureCancelledError:
        return "CANCELLED", None
    except grpc.RpcError as error:
        return error.code().name, None
    replayed = any(key == "idempotent-replayed" for key, _ in future.initial_metadata())
    return "OK", (number, attempt, "replay" if replayed else "first")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("target", "key", "account"):
        parser.add_argument(name)
    parser.add_argument("amount", type=int)
    for name in ("--deadline", "--cancel-after", "--until"):
        parser.add_argument(name, type=float)
    options = parser.parse_args()
    until = time.monotonic() + (options.until or 0)
    settings = [("grpc.service_config", json.dumps(SERVICE_CONFIG)), ("grpc.initial_reconnect_backoff_ms", 100)]
    tries = 0
    with grpc.insecure_channel(options.target, settings) as channel:
        while True:
            tries += 1
            code, answer = call(channel, options)
            if code in FINAL or time.monotonic() >= until:
                break
            time.sleep(0.2)
    print(code, *(answer or ()), tries if answer else "")
    return 0 if code == "OK" else 1


if __name__ == "__main__":
    sys.exit(main())
