#!/usr/bin/env python3
"""Holds the servers of this folder against tests/wire, and their results against results.tsv.

    tests/foreign/run.py FOLDER [--bless]

FOLDER takes the packages that they need, which npm and pip install. --bless writes results.tsv and the table of README.md
anew. Ends with 1 if a result differs from that file.
"""
import concurrent.futures
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIRE = HERE.parent / "wire"
RESULTS, README = HERE / "results.tsv", HERE / "README.md"

# Each with its store, and the routes whose policy the middleware can express.
SERVERS = {
    "@node-idempotency/core": (
        "node/server.js", "node-idempotency", "redis-server",
        "/replay,/optional,/wait,/everything,/unchecked,/scoped,/json,/nested/pay/run,/nested/refund/run,/put,/legacy,"
        "/orders/{id}/pay",
    ),
    "express-idempotency": (
        "node/server.js", "express-idempotency", "memory",
        "/replay,/optional,/json,/nested/pay/run,/nested/refund/run,/put",
    ),
    "asgi-idempotency-header": (
        "python/server.py", None, "redis-server", "/replay,/optional,/unchecked,/nested/pay/run,/nested/refund/run",
    ),
    "plain Python": (
        "python/plain.py", None, "memory",
        "/replay,/optional,/strict,/reject,/wait,/everything,/final,/scoped,/json,/unchecked,/small,/resubmit,"
        "/nested/pay/run,/nested/refund/run,/put,/legacy,/orders/{id}/pay",
    ),
}


def install(folder):
    node, python = folder / "node", folder / "python"
    shutil.copytree(HERE / "node", node, dirs_exist_ok=True)
    subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=node, check=True)
    subprocess.run([sys.executable, "-m", "venv", python], check=True)
    requirements = HERE / "python" / "requirements.txt"
    subprocess.run([python / "bin" / "pip", "install", "--quiet", "--requirement", requirements], check=True)


def ask(name, folder):
    """The results of one server as {case: (passed or failed, line of the report)}."""
    script, argument, store, routes = SERVERS[name]
    if script.startswith("node"):
        command = ["node", str(folder / script), argument]
    else:
        command = [str(folder / "python" / "bin" / "python"), str(HERE / script)]
    run = [sys.executable, WIRE / "run.py", "--server", *command, "--store", store, "--foreign", "/executions," + routes]
    report = subprocess.run(run, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    (folder / f"{name.replace('/', '-')}.log").write_text(report)
    print(f"{name}: {report.splitlines()[-1]}", flush=True)
    words = {"ok": "passed", "FAIL": "failed"}
    found = re.finditer(r"^(ok|FAIL) +(\w+).*", report, re.MULTILINE)
    return {line[2]: (words[line[1]], line[0]) for line in found}


def read():
    header, *rows = (line.split("\t") for line in RESULTS.read_text().splitlines())
    return {(row[0], name): result for row in rows for name, result in zip(header[1:], row[1:])}


def write(results):
    rows = [["case", *SERVERS]]
    for case in dict.fromkeys(case for case, _ in results):
        rows.append([case, *(results.get((case, name), "-") for name in SERVERS)])
    RESULTS.write_text("".join("\t".join(row) + "\n" for row in rows))


def cases():
    """The names of the cases in their order, with what each says."""
    listed = subprocess.run([sys.executable, WIRE / "run.py", "--list"], check=True, text=True, stdout=subprocess.PIPE)
    found = (re.match(r"(\w+).* x\d+ *(.*)", line) for line in listed.stdout.splitlines())
    return {line[1]: line[2] for line in found}


def table(results, told):
    rows = ["| case | " + " | ".join(f"`{name}`" for name in SERVERS) + " |", "| --- |" + " --- |" * len(SERVERS)]
    for case in told:
        row = [results.get((case, name), "-") for name in SERVERS]
        if "failed" in row:
            text = told[case].rstrip(".") or case.replace("_", " ")
            rows.append(f"| {text[0].upper()}{text[1:]} (`{case}`) | " + " | ".join(row).replace("failed", "**failed**") + " |")
    for name in SERVERS:
        passed, failed = (sum(r == word for (_, n), r in results.items() if n == name) for word in ("passed", "failed"))
        rows.append(f"| `{name}`: {passed} passed, {failed} failed |" + " |" * len(SERVERS))
    return "\n".join(rows)


def main():
    folder, bless = Path(sys.argv[1]).resolve(), "--bless" in sys.argv
    folder.mkdir(parents=True, exist_ok=True)
    install(folder)
    told = cases()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answers = dict(zip(SERVERS, pool.map(lambda name: ask(name, folder), SERVERS)))
    found = {(case, name): answers[name][case][0] for case in told for name in SERVERS if case in answers[name]}
    marks = r"(<!-- table -->\n)[^!]*(<!-- end -->)"
    page = re.sub(marks, lambda mark: f"{mark[1]}{table(found, told)}\n{mark[2]}", README.read_text())
    if bless:
        write(found)
        README.write_text(page)
    expected, different = read(), 0
    for key in sorted(expected.keys() | found.keys()):
        now, then = found.get(key, "-"), expected.get(key, "-")
        if now != then:
            different += 1
            case, name = key
            print(f"{name}: {case}: {now}, and results.tsv says {then}\n    {answers[name].get(case, ('', ''))[1][:500]}")
    if not different and README.read_text() != page:
        print("the table of README.md is not that of results.tsv: run it with --bless")
        return 1
    return 1 if different else 0


sys.exit(main())
