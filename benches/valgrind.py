"""Counts what the program of benches/layer/src/bin/paths.rs does, with Valgrind: the same on a busy machine as on an idle one.

Callgrind tells how often each instruction was executed, objdump tells what it is, and DHAT how large blocks were.
"""
import functools
import json
import os
import re
import subprocess
import sys
import tempfile

REQUESTS = 1000
CACHE_LINE = 64
# Valgrind knows no SHA instructions, so the hash takes its long way, and would hide the rest.
HASH = re.compile(r"sha2::.*compress")
# The C library would choose its copying by the processor.
COPIES = "glibc.cpu.hwcaps=-AVX_Fast_Unaligned_Load,-AVX2_Usable,-ERMS,-FSRM,-AVX512VL"
CLOCK = re.compile(r"(__)?clock_gettime")
ALLOCATES = re.compile(r"(malloc|calloc|realloc|aligned_alloc|posix_memalign)$")
BOX = re.compile(r": new<(tower_idempotency|layer_benches::ideal::run)::")
# An exchange with memory locks without saying so.
LOCKED = re.compile(r"\t(lock |xchg .*\()")
SYSTEM_CALL = re.compile(r"\tsyscall\b")


class Profile:
    """What callgrind wrote: how often each instruction was executed."""

    def __init__(self, lines):
        self.executed = {}  # (object, address, function): how often
        self.names, self.objects = {}, {}
        where, function, address, call = None, None, 0, False
        for line in lines:
            if found := re.match(r"ob=(.*)", line):
                where = self.named(self.objects, found[1])
            elif found := re.match(r"cob=(.*)", line):
                self.named(self.objects, found[1])
            elif found := re.match(r"fn=(.*)", line):
                function = self.named(self.names, found[1])
            elif found := re.match(r"cfn=(.*)", line):
                self.named(self.names, found[1])
            elif line.startswith("calls="):
                call = True
            elif found := re.match(r"(0x\w+|[+-]\d+|\*) \S+ (\d+)$", line):
                # An address is told by its distance from the one before.
                place = found[1]
                address = int(place, 16) if place.startswith("0x") else address + int(place.replace("*", "0"))
                # The line after a call has the costs of what was called.
                if not call:
                    key = where, address, function
                    self.executed[key] = self.executed.get(key, 0) + int(found[2])
                call = False

    @staticmethod
    def named(table, text):
        """A name is written once, behind its number."""
        number, name = re.match(r"\((\d+)\)(?: (.*))?", text).groups()
        if name:
            table[number] = name
        return table.get(number, "")

    def called(self, pattern):
        """How often functions were called. The file's own numbers of calls are of the whole program."""
        first = {}
        for (where, address, name), count in self.executed.items():
            if pattern.match(name):
                first[where, name] = min(first.get((where, name), (address, count)), (address, count))
        return sum(count for _, count in first.values())

    def instructions(self, of_hash):
        return sum(count for (_, _, name), count in self.executed.items() if bool(HASH.search(name)) == of_hash)

    def special(self, pattern, leave_out=None):
        """How often instructions were executed that the pattern finds."""
        return sum(
            count
            for (where, address, name), count in self.executed.items()
            if address in found_in(where, pattern) and not (leave_out and leave_out.match(name))
        )

    def code(self):
        """KiB of code, in lines of the cache, that most requests go through, beside the hash."""
        lines = {}
        for (where, address, name), count in self.executed.items():
            if not HASH.search(name):
                line = where, address // CACHE_LINE
                lines[line] = lines.get(line, 0) + count
        return sum(count >= REQUESTS / 2 for count in lines.values()) * CACHE_LINE / 1024


@functools.cache
def found_in(binary, pattern):
    if not os.path.exists(binary):
        return frozenset()
    code = subprocess.run(
        ["objdump", "--disassemble", "--no-show-raw-insn", binary], check=True, text=True, stdout=subprocess.PIPE
    ).stdout
    return frozenset(int(line.split(":")[0], 16) for line in code.splitlines() if pattern.search(line))


def valgrind(*command):
    ran = subprocess.run(
        ["valgrind", *command], text=True, stderr=subprocess.PIPE, check=False,
        env={**os.environ, "GLIBC_TUNABLES": COPIES},
    )
    if ran.returncode:
        sys.exit(ran.stderr)


def largest_box(blocks):
    """The size of the largest value of the layer's own that each request boxes: the future of what runs."""
    boxes = {number for number, frame in enumerate(blocks["ftbl"]) if BOX.search(frame)}
    sizes = (
        block["tb"] // block["tbk"]
        for block in blocks["pps"]
        # Not what is made once.
        if block["tbk"] >= REQUESTS and boxes.intersection(block["fs"])
    )
    return max(sizes, default=0)


def count(binary, case):
    """Each figure of one request."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "profile")
        valgrind(
            "--tool=callgrind", "--dump-instr=yes", "--collect-atstart=no", "--toggle-collect=*::counted",
            f"--callgrind-out-file={path}", binary, case, str(REQUESTS),
        )
        with open(path, encoding="utf-8") as lines:
            profile = Profile(lines)
        valgrind("--tool=dhat", f"--dhat-out-file={path}", binary, case, str(REQUESTS))
        with open(path, encoding="utf-8") as file:
            largest = largest_box(json.load(file))
    return {
        "instructions": round(profile.instructions(of_hash=False) / REQUESTS),
        "instructions of the hash": round(profile.instructions(of_hash=True) / REQUESTS),
        "KiB of code": round(profile.code(), 1),
        "locked instructions": round(profile.special(LOCKED) / REQUESTS, 1),
        "clock reads": round(profile.called(CLOCK) / REQUESTS, 2),
        # Under Valgrind each look at the clock is one, and outside none is.
        "system calls": round(profile.special(SYSTEM_CALL, leave_out=CLOCK) / REQUESTS, 2),
        "allocations": round(profile.called(ALLOCATES) / REQUESTS, 1),
        "largest box": largest,
    }
