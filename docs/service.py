"""Ten thousand users, one agent for each: service.py FOLDER, which contains prior.nc. POST {"user": 3, "arms": [[...], ...]} to /choose, and its
answer, with a "reward" added, to /observe: soon, late or never."""
import http.server
import json
import pathlib
import sys
import threading
import time

import thompson

FOLDER, PORT, SECONDS = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 8000, 60
log, lock = (FOLDER / "events.jsonl").open("a+b"), threading.Lock()


def save():
    """The name says how much of the log has been learned; after a crash the rest is learned again."""
    with lock:
        agents.save(FOLDER / f"agents-{log.tell():015d}.nc")
        for old in saved()[1:]:
            old.unlink()


def saved():
    return sorted(FOLDER.glob("agents-*.nc"), reverse=True)


def choose(event):
    (arm,), (p,) = agents.choose([event["user"]], event["arms"], propensity=True)
    return {**event, "arm": int(arm), "propensity": p}


def learn(event):
    agents.observe([event["user"]], [event["arms"][event["arm"]]], [event["reward"]])


def observe(event):
    if event["arm"] < 0:
        raise IndexError("arms are counted from 0")
    learn(event)
    log.write(json.dumps(event).encode() + b"\n")
    log.flush()
    return {}


def refuse(word):
    raise ValueError(f"{word} is not JSON")


class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        try:
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])), parse_constant=refuse)
            with lock:
                code, answer = 200, {"/choose": choose, "/observe": observe}[self.path](event)
        except (thompson.Error, TypeError, ValueError, LookupError, RecursionError) as error:
            code, answer = 400, {"error": f"{error} is missing, or unknown" if isinstance(error, KeyError) else str(error)}
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())


def start():
    """The agents of the last file that opens, and how much of the log they have learned. The log has everything, so they can also begin without a file."""
    for name in saved():
        try:
            return thompson.Agents.open(name), int(name.stem[7:])
        except thompson.Error as error:
            name.rename(name.with_suffix(".bad"))
            print(f"{error}; it is set aside", file=sys.stderr)
    return thompson.Agents(FOLDER / "prior.nc", 10000, floor=0.01), 0


def learn_again(line):
    try:
        learn(json.loads(line))
    except (thompson.Error, TypeError, ValueError, LookupError) as error:  # an earlier version accepted it
        print(f"left out {line[:200]!r}: {error}", file=sys.stderr)


agents, learned = start()
log.seek(learned)
late, end, _ = log.read().rpartition(b"\n")  # a last line without an end was cut off, and its sender got no answer
log.truncate(learned + len(late + end))
log.seek(0, 2)
for line in late.splitlines():
    learn_again(line)
save()
server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
while not time.sleep(SECONDS):
    try:
        save()
    except thompson.Error as error:  # a full disk; the next time it may work, and nothing is lost meanwhile
        print(error, file=sys.stderr)
