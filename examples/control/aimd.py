#!/usr/bin/env python3
"""An AIMD controller for Longhaul's simulator, in Python without other packages.

    longhaul sim run --link transatlantic --control examples/control/aimd.py

The records are those of include/longhaul_control.h. An event costs some 30 microseconds
here, and 10 in C.
"""
import ctypes
import mmap
import os
import platform
import struct
import sys

START, ACK, CONGESTION, RECOVERY_END, TIMEOUT, UNDO, IDLE_END, STOP = range(1, 9)
CWND_LIMITED, IS_NEW = 1, 32
RECOVERY = 1
PACED, HAS_SSTHRESH = 1, 2
MAGIC, VERSION = b"LHCTRL\0\0", 1

FUTEX = {"x86_64": 202, "aarch64": 98}[platform.machine()]
FUTEX_WAIT, FUTEX_WAKE = 0, 1


class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


class Simulator:
    """The shared page: events in, answers out."""

    def __init__(self):
        number = os.environ.get("LONGHAUL_CONTROL_FD")
        if number is None:
            sys.exit("not started by longhaul: use longhaul sim run --control PROGRAM")
        self.page = mmap.mmap(int(number), 4096)
        magic, version = struct.unpack_from("<8sQ", self.page, 0)
        if (magic, version) != (MAGIC, VERSION):
            sys.exit(f"this longhaul speaks version {version} of longhaul_control.h, not {VERSION}")
        struct.pack_into("<Q", self.page, 16, VERSION)
        self.event_bell = ctypes.c_uint32.from_buffer(self.page, 64)
        ctypes.c_uint32.from_buffer(self.page, 68).value = 1  # Always to be woken.
        self.reply_bell = ctypes.c_uint32.from_buffer(self.page, 448)
        self.heard = 0
        self.parent = os.getppid()
        self.syscall = ctypes.CDLL(None, use_errno=True).syscall

    def futex(self, bell, operation, value):
        second = ctypes.byref(Timespec(1, 0))
        self.syscall(FUTEX, ctypes.byref(bell), operation, value, second, None, 0)

    def events(self):
        """Yields the 27 fields of each event, until the simulation has ended."""
        while True:
            while self.event_bell.value == self.heard:
                self.futex(self.event_bell, FUTEX_WAIT, self.heard)
                if os.getppid() != self.parent:
                    return
            self.heard = self.event_bell.value
            event = struct.unpack_from("<27Q", self.page, 128)
            if event[0] == STOP:
                return
            yield event

    def answer(self, cwnd, pacing_bps=None, ssthresh=None):
        flags = (PACED if pacing_bps else 0) | (HAS_SSTHRESH if ssthresh else 0)
        struct.pack_into(
            "<7Q", self.page, 512, flags, cwnd, pacing_bps or 0, ssthresh or 0, 2, 2, self.heard
        )
        self.reply_bell.value = (self.reply_bell.value + 1) % 2**32
        self.futex(self.reply_bell, FUTEX_WAKE, 1)


def main():
    simulator = Simulator()
    cwnd, ssthresh = 10.0, None
    for event in simulator.events():
        kind, _now_ns, flags, phase, newly_acked = event[:5]
        if kind == ACK and phase != RECOVERY and flags & CWND_LIMITED:
            slow_start = ssthresh is None or cwnd < ssthresh
            cwnd += newly_acked if slow_start else newly_acked / cwnd
        elif kind in (CONGESTION, TIMEOUT):
            if flags & IS_NEW:
                ssthresh = max(int(cwnd / 2), 2)
            if kind == TIMEOUT:
                cwnd = 1.0
        elif kind == RECOVERY_END:
            cwnd = float(ssthresh)
        simulator.answer(int(cwnd), ssthresh=ssthresh)


main()
