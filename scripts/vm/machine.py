"""A stock Debian kernel in a virtual machine of its own, for `vm-check` and `kernel-oracle`.

It boots under qemu from a folder in memory that holds the programs needed. The machine is
emulated and counts its own time by the instructions it executes (-icount): how fast or busy
the real one is changes how long this takes and nothing else, idle time is skipped, and a run
is nearly the same each time. That is why hardware virtualisation is not used where there is
some. It has no network device: no packet leaves it.

Everything is written below target/vm.
"""

import glob
import json
import os
import platform
import shutil
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TARGET = os.path.abspath(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")))
PLACE = os.path.join(TARGET, "vm")
NAME = os.path.basename(sys.argv[0])

# Program and the Debian package it comes from: what runs out here ...
OUTSIDE = {"qemu-system-x86_64": "qemu-system-x86", "cpio": "cpio", "dpkg-deb": "dpkg"}
# ... and what runs inside, beside a busybox for everything else.
INSIDE = {
    "bash": "bash",
    "busybox": "busybox-static",
    "dash": "dash",
    "ip": "iproute2",
    "tc": "iproute2",
    "ethtool": "ethtool",
    "iperf3": "iperf3",
    "ping": "iputils-ping",
    "getent": "libc-bin",
    "mount": "mount",
    "setpriv": "util-linux",
    "tcpdump": "tcpdump",
    "unshare": "util-linux",
}
KERNEL = "linux-image-cloud-amd64"
# Folders and files of modules, below the kernel's. What needs another one, the kernel loads
# itself, by busybox's modprobe, as it does everywhere.
MODULES = [
    "net", "lib", "crypto", "arch/x86/crypto", "drivers/block/loop.ko", "drivers/net/dummy.ko",
    "drivers/net/tun.ko", "drivers/net/veth.ko", "fs/ext4", "fs/jbd2", "fs/mbcache.ko",
]

# Longest that a build or one machine may take, in seconds, and after how long a silence
# it is said that it still runs.
LIMIT = 3600
SILENCE = 60


class Failure(Exception):
    """What is wrong, in one line."""


def say(text):
    print(f"{NAME}: {text}", flush=True)


def run(*command, **options):
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=LIMIT, **options
        )
    except subprocess.TimeoutExpired:
        raise Failure(f"took longer than {LIMIT} s: {' '.join(command)}") from None
    if done.returncode != 0:
        raise Failure(f"failed: {' '.join(command)}")
    return done.stdout


def install():
    """Installs what is missing where that is allowed, or says what to install."""
    if platform.machine() != "x86_64" or not shutil.which("apt-get"):
        raise Failure("needs Debian on x86_64, or what is built on it")
    known = {**OUTSIDE, **INSIDE}
    missing = sorted({package for program, package in known.items() if not shutil.which(program)})
    if not missing:
        return
    if os.geteuid() != 0:
        raise Failure(f"missing {' '.join(missing)}; as root: apt-get install {' '.join(missing)}")
    say(f"installing {' '.join(missing)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
    try:
        run(*command, env=environment, stderr=subprocess.DEVNULL)
    except Failure:
        run("apt-get", "update", "-qq")
        run(*command, env=environment)


def kernel():
    """The newest stock kernel, downloaded and unpacked once, never installed."""
    folder = os.path.join(PLACE, "kernel")
    if not os.path.isdir(folder):
        newest = depends_on(KERNEL)
        if not newest and os.geteuid() == 0:
            run("apt-get", "update", "-qq")
            newest = depends_on(KERNEL)
        if not newest:
            raise Failure(f"no package {KERNEL} is known; as root: apt-get update")
        say(f"downloading {newest}")
        run("apt-get", "download", "-qq", newest, cwd=PLACE, stderr=subprocess.DEVNULL)
        [archive] = glob.glob(os.path.join(PLACE, f"{newest}_*.deb"))
        unpacked = folder + ".part"
        run("dpkg-deb", "-x", archive, unpacked)
        os.remove(archive)
        os.rename(unpacked, folder)
    [image] = glob.glob(os.path.join(folder, "boot", "vmlinuz-*"))
    [modules] = glob.glob(os.path.join(folder, "lib", "modules", "*", "kernel"))
    return image, modules


def depends_on(package):
    text = run("apt-cache", "depends", package, stderr=subprocess.DEVNULL).decode()
    names = [line.split()[1] for line in text.splitlines() if line.strip().startswith("Depends:")]
    return names[0] if names else None


def cargo(*command):
    """Runs cargo in the workspace; its executables by the name of their target."""
    program = os.environ.get("CARGO", "cargo")
    options = ["--locked", "--package", "longhaul-cli", "--message-format=json-render-diagnostics"]
    messages = map(json.loads, run(program, *command, *options, cwd=ROOT).splitlines())
    return {m["target"]["name"]: m["executable"] for m in messages if m.get("executable")}


def release():
    """The release of the program."""
    say("building")
    return cargo("build", "--release")["longhaul"]


def fill(folder, modules, programs, checks):
    """Lays out the machine's file system.

    `programs` are those of this project, {path in the machine: file}; `checks` name the
    scripts beside this one that `init` may be asked for.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for name in [
        "bin", "checks", "dev", "etc/sysctl.d", "mnt", "proc", "root", "run", "sys", "tmp", "usr/bin",
        "var/lib", "var/tmp",
    ]:
        os.makedirs(os.path.join(folder, name))
    os.chmod(os.path.join(folder, "tmp"), 0o1777)
    os.symlink("bin", os.path.join(folder, "sbin"))

    def put(source, path):
        path = os.path.join(folder, path.lstrip("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.lexists(path):
            os.remove(path)
        shutil.copy(source, path)

    put(shutil.which("busybox"), "bin/busybox")
    for name in run("busybox", "--list").decode().split():
        if name != "busybox":
            os.symlink("busybox", os.path.join(folder, "bin", name))
    # busybox's own shell would take its own ip and ping before the real ones.
    inside = {name: shutil.which(name) for name in INSIDE if name not in ("busybox", "dash")}
    inside["sh"] = shutil.which("dash")
    places = {f"bin/{name}": source for name, source in inside.items()} | programs
    for path, source in places.items():
        put(source, path)
        for library in libraries(source):
            put(library, library)
    release = os.path.basename(os.path.dirname(modules))
    below = os.path.join(folder, "lib/modules", release)
    for name in MODULES:
        source, target = os.path.join(modules, name), os.path.join(below, "kernel", name)
        if os.path.isdir(source):
            shutil.copytree(source, target)
        elif os.path.exists(source):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)
    run("busybox", "depmod", "-b", folder, release)
    put(os.path.join(HERE, "init"), "init")
    for check in checks:
        put(os.path.join(HERE, check), f"checks/{check}")
    for path, text in {
        "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
        "etc/group": "root:x:0:\n",
        "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    }.items():
        with open(os.path.join(folder, path), "w", encoding="ascii") as file:
            file.write(text)


def libraries(program):
    text = run("ldd", program).decode()
    return [word for line in text.splitlines() for word in line.split() if word.startswith("/")]


def pack(folder, archive):
    """Packs a folder; archives may be joined, and what comes later is added."""
    names = subprocess.run(["find", "."], cwd=folder, stdout=subprocess.PIPE, check=True).stdout
    with open(archive, "wb") as file:
        subprocess.run(
            ["cpio", "--create", "--format=newc", "--quiet"],
            cwd=folder, input=names, stdout=file, check=True,
        )


def read(records):
    """What a machine has found so far."""
    found = {}
    with open(records, encoding="utf-8", errors="replace") as file:
        # The last line may not be complete yet.
        for line in (line for line in file if line.endswith("\n")):
            what, number, text = line.rstrip("\r\n").split(" ", 2)
            found.setdefault(what, {}).setdefault(int(number), []).append(text)
    return found


def boot(name, settings, image, archive):
    """Runs one machine to its end; what it found, as {what: {run: [text]}}."""
    records = os.path.join(PLACE, f"{name}.found")
    console = os.path.join(PLACE, f"{name}.console")
    words = " ".join(f"{key}={value}" for key, value in settings.items())
    command = [
        # However this script ends, the machine ends with it.
        "setpriv", "--pdeathsig", "KILL",
        "qemu-system-x86_64", "-nodefaults", "-display", "none", "-no-reboot",
        "-accel", "tcg", "-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm",
        "-seed", "1", "-cpu", "max", "-smp", "1", "-m", "3G",
        "-serial", "stdio", "-serial", f"file:{records}",
        "-kernel", image, "-initrd", archive,
        "-append", f"console=ttyS0 quiet panic=-1 random.trust_cpu=on {words}",
    ]
    machine = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    # A silent machine would block the reading below: time is kept apart from it.
    clock = threading.Timer(LIMIT, machine.kill)
    clock.start()
    try:
        with open(console, "wb") as log:
            for line in machine.stdout:
                log.write(line)
                log.flush()
                text = line.decode(errors="replace").strip()
                if text and "\x1b" not in text:
                    say(f"[{name}] {text}")
        machine.wait()
    finally:
        machine.kill()
        machine.wait()
        late = not clock.is_alive()
        clock.cancel()
    found = read(records)
    if "end" not in found:
        why = f"took longer than {LIMIT} s" if late else "ended before its last check"
        say(f"[{name}] the machine {why}; see {os.path.relpath(console)}")
    return found
