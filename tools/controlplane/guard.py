"""Outlives the harness by a moment, to kill its remaining processes.

Run as a program. It leads the process group that every process of the control plane
belongs to, and reads from a pipe whose other end only the harness holds. However the
harness ends, kill -9 included, the pipe ends with it; then the whole group goes, this
process too. A parent-death signal would not do: it fires when the *thread* that started a
child ends, and it exists on Linux only.
"""

import os
import signal
import sys

for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTTOU):
    signal.signal(ignored, signal.SIG_IGN)
os.setpgid(0, 0)
sys.stdout.write("ready\n")
sys.stdout.flush()
sys.stdin.buffer.read()
os.killpg(0, signal.SIGKILL)
