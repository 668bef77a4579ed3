"""Clicks of any number of users, an agent for each: service.py FOLDER, which contains prior.nc. POST {"user": "ann", "arms": [[...], ...]} to /choose,
and {"choice": ..., "reward": 1} to /observe if the user clicks; a choice without an answer counts as no click after TIMEOUT seconds.
service.py FOLDER events.nc writes the log of all choices that are closed, for `study: replay`."""
import http.server
import json
import pathlib
import sys
import threading
import time

import thompson

FOLDER, PORT, SECONDS, TIMEOUT = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "8000", 60, float(sys.argv[3]) if len(sys.argv) > 3 else 1800
log, lock, waiting = (FOLDER / "events.jsonl").open("a+b"), threading.Lock(), {}  # waiting: choices without an answer, by number


def save():
    """The name says how much of the log has been learned; after a crash the rest is learned again."""
    with lock:
        agents.save(FOLDER / f"agents-{log.tell():015d}.nc")
        for old in saved()[1:]:
            old.unlink()


def saved():
    return sorted(FOLDER.glob("agents-*.nc"), reverse=True)


def write(line):
    log.write(json.dumps(line).encode() + b"\n")
    log.flush()
    return line


def meet(user):
    if user not in users:
        agents.add([user])
        users.add(user)


def choose(event):
    user, arms = event["user"], event["arms"]
    if isinstance(user, bool) or not isinstance(user, (str, int)):
        raise TypeError(f"user is {json.dumps(user)[:40]}: a name or a whole number is needed")
    user = str(user)
    meet(user)
    (arm,), (p,) = agents.choose([user], arms, propensity=True)
    choice = write({"choice": log.tell(), "user": user, "arms": arms, "arm": int(arm), "propensity": p, "time": time.time()})
    waiting[choice["choice"]] = choice
    return choice


def learn(choice, reward):
    meet(choice["user"])
    agents.observe([choice["user"]], [choice["arms"][choice["arm"]]], [reward])


def observe(event):
    choice = waiting[event["choice"]]  # a late click is not learned: the choice has counted as no click
    learn(choice, event["reward"])
    write({"choice": event["choice"], "reward": event["reward"]})
    del waiting[event["choice"]]
    return {}


def close():
    """Choices that were answered by nothing are answers: left out, every arm would look as if it were always clicked."""
    with lock:
        for number in [number for number, choice in waiting.items() if choice["time"] < time.time() - TIMEOUT]:
            observe({"choice": number, "reward": 0})


def refuse(word):
    raise ValueError(f"{word} is not JSON")


class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        try:
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])), parse_constant=refuse)
            with lock:
                code, answer = 200, {"/choose": choose, "/observe": observe}[self.path](event)
        except (thompson.Error, TypeError, ValueError, LookupError, RecursionError) as error:
            code, answer = 400, {"error": f"{error} is missing, unknown or closed" if isinstance(error, KeyError) else str(error)}
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
    return thompson.Agents(FOLDER / "prior.nc", [], likelihood="logistic", memory="filtered", floor=0.01), 0


def leave_out(what, error):
    print(f"left out {str(what)[:200]} of the log: {error!r}", file=sys.stderr)


def events():
    """All choices of the log that are closed: where their rewards stand in it, they, and the rewards. What cannot be read is left out."""
    chosen, at = {}, 0
    log.seek(0)
    for line in log:
        try:
            event = json.loads(line)
            if "arms" in event:
                chosen[event["choice"]] = event
            else:
                yield at, chosen.pop(event["choice"]), event["reward"]
        except (ValueError, TypeError, LookupError) as error:
            leave_out(line, error)
        at += len(line)
    waiting.update(chosen)


def end_last_line():
    """Ends a line that was cut off, whose sender got no answer: it is left out, and what follows can be read."""
    if log.seek(0, 2) > 0:
        log.seek(-1, 2)
        if log.read() != b"\n":
            log.write(b"\n")
            log.flush()


def export(path):
    """What `study: replay` reads, also while the service runs. A choice among fewer arms than another lacks the last ones."""
    import netCDF4
    import numpy as np
    closed = [(choice, reward) for _, choice, reward in events()]
    if not closed:
        sys.exit("a log for `study: replay` needs choices that are closed")
    lists = [choice["arms"] for choice, _ in closed]
    available = np.array([len(arms) for arms in lists])[:, None] > np.arange(max(map(len, lists)))
    features = np.full((*available.shape, len(lists[0][0])), np.nan)
    features[available] = [arm for arms in lists for arm in arms]
    columns = {"arm": ("i4", [choice["arm"] for choice, _ in closed]), "reward": ("f8", [reward for _, reward in closed]),
               "propensity": ("f8", [choice["propensity"] for choice, _ in closed])}
    with netCDF4.Dataset(path, "w") as file:
        for name, length in zip(("event", "arm", "dim"), features.shape):
            file.createDimension(name, length)
        file.createVariable("features", "f8", ("event", "arm", "dim"))[:] = features
        file.createVariable("available", "i1", ("event", "arm"))[:] = available
        for name, (kind, values) in columns.items():
            file.createVariable(name, kind, ("event",))[:] = values


if PORT.endswith(".nc"):
    export(PORT)
    sys.exit()

end_last_line()
agents, learned = start()
users = set(agents.names)
for position, choice, reward in events():
    if position >= learned:
        try:
            learn(choice, reward)
        except (thompson.Error, TypeError, ValueError, LookupError) as error:  # an earlier version accepted it
            leave_out(choice, error)
log.seek(0, 2)
save()
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(PORT)), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
last = time.monotonic()
while not time.sleep(min(1, TIMEOUT)):
    try:
        close()
        if time.monotonic() >= last + SECONDS:
            last = time.monotonic()
            save()
    except (thompson.Error, OSError) as error:  # a full disk; the next time it may work, and nothing is lost meanwhile
        print(error, file=sys.stderr)
