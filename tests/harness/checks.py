"""What a test expects, and for how long it waits. A check that does not hold, and a deadline, end it with a sentence."""
import random
import time

POLL_SECONDS = 0.01
# So that nothing hangs: far more than anything takes on a loaded machine. Where a time is the claim, the test says it.
HANG_SECONDS = 60


class Failure(Exception):
    """A check that did not hold; the text is all that the reader gets."""


class Skip(Exception):
    """What a test needs and this machine lacks."""


def check(condition, message):
    if not condition:
        raise Failure(message)


def wait_for(condition, what, seconds=HANG_SECONDS):
    """Returns the first true value of `condition()`; `what` may be a function, which tells how it stands then."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"after {seconds} s: {what() if callable(what) else what}")
        time.sleep(POLL_SECONDS)


def chosen(seed):
    """The seed itself, printed; a new one when none is given."""
    seed = random.SystemRandom().randrange(10**9) if seed is None else seed
    print(f"seed {seed} (repeat with --seed {seed})", flush=True)
    return seed


def without_times(text):
    """Standard output less the lines that carry times."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("time:"))


def without_waits(text):
    """Standard error less the line that says what a program waits for before it is admitted."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("laneway: this program waits "))
