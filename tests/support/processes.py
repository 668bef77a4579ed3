"""Which processes are running."""


def alive(processes):
    """Those of the processes that are running; a zombie is not."""
    running = []
    for process in processes:
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                if file.read().rsplit(")", 1)[1].split()[0] not in "ZX":
                    running.append(process)
        except OSError:
            pass
    return running
