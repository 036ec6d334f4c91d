#!/usr/bin/env python3
"""model.py: random sequences of steps.py, against what the model says must exist. TAP.

    model.py [--seed N] [--steps N] [--backend jail|local] [--user] [--without ACTION,...]
    model.py --replay FILE [--backend ...] [--user]

A sequence has 200 steps in a world of its own. When one breaks a promise, it is run again in new
worlds with parts left out, as long as a promise is broken, and the shortest one is printed: the
lines `# [action, slot, argument]` in a file are what --replay runs.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import time

import world
from steps import WEIGHTS, Run
from world import ROOT, USER, Violation, World, enter_mount_namespace

SEQUENCE = 200  # steps in one world
FULL_CHECK = 15  # steps between two checks of everything


def run_steps(steps, backend, user):
    """None, or (number of the step that broke a promise, how)."""
    run = Run(backend, user)
    number = 0
    try:
        for number, step in enumerate(steps):
            run.step(*step)
            if number % FULL_CHECK == FULL_CHECK - 1:
                run.check()
        run.check()
        return None
    except Violation as v:
        return number, str(v)
    finally:
        run.end()


def generate(rng, count, without):
    actions = [a for a in WEIGHTS if a not in without]
    weights = [WEIGHTS[a] for a in actions]
    return [[a, rng.randrange(4), rng.randrange(1000)]
            for a in rng.choices(actions, weights, k=count)]


def parts(steps):
    """What may be left out of a sequence: large parts, then each action, then small parts."""
    size = len(steps) // 2
    while size > 0:
        for at in range(0, len(steps), size):
            yield lambda now, a=at, n=size: now[:a] + now[a + n:]
        size //= 2
        if size == len(steps) // 8:
            for action in sorted({s[0] for s in steps}):
                yield lambda now, a=action: [s for s in now if s[0] != a]


def shorten(steps, backend, user, seconds):
    """The shortest sequence found in this time that still breaks a promise, and how it does."""
    until = time.monotonic() + seconds
    found, before = None, None
    while before != len(steps) and time.monotonic() < until:
        before = len(steps)
        for without in parts(steps):
            rest = without(steps)
            if not rest or len(rest) == len(steps) or time.monotonic() > until:
                continue
            broken = run_steps(rest, backend, user)
            if broken:
                steps, found = rest[:broken[0] + 1], broken[1]
    return steps, found


def show(steps, broken, backend, user, seconds):
    number, why = broken
    print(f"# step {number + 1}: {why}")
    world.WAIT = min(world.WAIT, 2)  # what is broken is now looked for, not judged
    steps, again = shorten(steps[:number + 1], backend, user, seconds)
    print(f"# {len(steps)} steps{': ' + again if again else ', which did not break it again'}")
    for step in steps:
        print("#", json.dumps(step))


def replay(path):
    with open(path, encoding="utf-8") as f:
        lines = [line.lstrip("# ").strip() for line in f]
    return [json.loads(line) for line in lines if line.startswith("[")]


def works_here(backend, user):
    """None, or why there is no such sandbox here."""
    w = World(backend, user)
    a = w.call("run", "--workspace", w.workspace, "--", "true")
    w.end()
    return None if a.status == 0 else " ".join(a.err.split())


def run_backend(args, backend, seed):
    """Runs all sequences on one backend; false when a promise was broken."""
    rng = random.Random(f"{seed} {backend}")
    left, begin = args.steps, time.monotonic()
    while left > 0:
        steps = replay(args.replay) if args.replay else \
            generate(rng, min(left, SEQUENCE), args.without.split(","))
        broken = run_steps(steps, backend, args.user)
        if broken:
            print(f"# seed {seed}, after {args.steps - left} steps of whole sequences")
            show(steps, broken, backend, args.user, args.shrink)
            return False
        left -= args.steps if args.replay else len(steps)
    print(f"# {backend}: {(time.monotonic() - begin) / args.steps * 1000:.1f} ms a step")
    return True


def arguments():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=None)
    ap.add_argument("--steps", type=int, default=300)
    ap.add_argument("--backend", choices=("jail", "local"), default=None)
    ap.add_argument("--user", action="store_true", help="a root caller runs caisson as an ordinary user")
    ap.add_argument("--without", default="", help="actions that are left out")
    ap.add_argument("--shrink", type=float, default=90, help="seconds for finding a shorter sequence")
    ap.add_argument("--replay", default=None)
    return ap.parse_args()


def reachable():
    return subprocess.run(["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups",
                           "test", "-x", world.CAISSON], check=False).returncode == 0


def main():
    args = arguments()
    if args.user and not (ROOT and reachable()):
        print("1..0 # SKIP the caller is an ordinary user already, or such a user cannot reach the program")
        return 0
    enter_mount_namespace()
    seed = random.SystemRandom().randrange(1 << 32) if args.seed is None else args.seed
    failed = number = 0
    for backend in [args.backend] if args.backend else ["jail", "local"]:
        number += 1
        name = f"{number} - {args.steps} random steps on {backend}, seed {seed}"
        missing = works_here(backend, args.user)
        if missing and not os.environ.get("CSN_MUST_WORK"):
            print(f"ok {name} # SKIP {missing}")
        elif run_backend(args, backend, seed):
            print(f"ok {name}")
        else:
            failed += 1
            print(f"not ok {name}")
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
