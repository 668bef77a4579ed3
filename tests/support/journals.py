"""Journals of finished tasks (src/parallel/tasks/journal.h), read and modified without the program."""

import collections
import glob
import hashlib
import os
import struct

HEADER = struct.Struct("<8s32sqqqqd64s16s")
MARK = b"thompso2"
NAME = r"[0-9a-f]{16}\.journal"

# `task` is the place of the task in the study that ran it, `name` what it depends on: 24 digits, then its first run and their number, 4 bytes each.
Record = collections.namedtuple("Record", "path at task name status header payload")


def files(out):
    return sorted(glob.glob(os.path.join(out, "tasks", "*.journal")))


def read(path):
    """The complete records of one journal, and how many bytes belong to none."""
    with open(path, "rb") as file:
        data = file.read()
    found, at, bad = [], 0, 0
    while at < len(data):
        header = data[at : at + HEADER.size]
        whole = len(header) == HEADER.size and header[:8] == MARK and header[-16:].decode("latin1") == hashlib.sha256(header[:-16]).hexdigest()[:16]
        fields = HEADER.unpack(header) if whole else None
        payload = data[at + HEADER.size : at + HEADER.size + fields[4]] if whole else b""
        if not whole or len(payload) < fields[4]:
            after = data.find(MARK, at + 1)
            after = after if after > 0 else len(data)
            bad += after - at
            at = after
            continue
        if fields[3] == 0:  # void
            pass
        elif hashlib.sha256(payload).hexdigest() == fields[7].decode():
            found.append(Record(path, at, fields[2], fields[1].decode("latin1"), fields[3], header, payload))
        else:
            bad += HEADER.size + len(payload)
        at += HEADER.size + len(payload)
    return found, bad


def records(out):
    """All complete records in a study's folder."""
    return [record for path in files(out) for record in read(path)[0]]


def done(out):
    """The tasks that succeeded."""
    return {record.task for record in records(out) if record.status == 1}


def write(path, kept):
    with open(path, "wb") as file:
        for record in kept:
            file.write(record.header + record.payload)


def rewrite(out, change):
    """Replace the payload of every record by change(payload), with checksums that match it."""
    for path in files(out):
        kept = []
        for each in read(path)[0]:
            payload, fields = change(each.payload), list(HEADER.unpack(each.header))
            fields[4], fields[7] = len(payload), hashlib.sha256(payload).hexdigest().encode()
            head = HEADER.pack(*fields)[:-16]
            kept.append(each._replace(header=head + hashlib.sha256(head).hexdigest()[:16].encode(), payload=payload))
        write(path, kept)


def record(task, finished, payload=b""):
    """A complete record of a task that succeeded at this time."""
    name = f"{task:032d}"
    fields = struct.pack("<8s32sqqqqd64s", MARK, name.encode(), task, 1, len(payload), 0, finished, hashlib.sha256(payload).hexdigest().encode())
    return Record(None, 0, task, name, 1, fields + hashlib.sha256(fields).hexdigest()[:16].encode(), payload)


def remove(out, *tasks):
    """Remove all records of tasks."""
    for path in files(out):
        whole, bad = read(path)
        assert bad == 0, path
        kept = [record for record in whole if record.task not in tasks]
        if kept:
            write(path, kept)
        else:
            os.remove(path)


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0x5A]))


def damage(out, *tasks):
    """Change a byte in the payload of each record of these tasks."""
    for record in records(out):
        if record.task in tasks:
            flip(record.path, record.at + HEADER.size + len(record.payload) // 2)


def damage_header(out, *tasks):
    for record in records(out):
        if record.task in tasks:
            flip(record.path, record.at + 100)
