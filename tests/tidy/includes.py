"""Which folder may include which, and what the pure parts may not call.

The layers, from below: include/lockstep (types and contracts), log, transport (the interface, then one folder per
implementation), consensus/core (pure), consensus/replica (sees everything), sim (runs all of it over a simulated fabric).
Tools and examples use what is installed; the simulator's tool is a part of the simulator.
"""

import re

from source import Finding, cpp_files, line_of, read, without_comments_and_strings

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)

# Folder -> the project's files it may include, as prefixes. The longest folder that fits a file counts.
ALLOWED = {
    "include/lockstep/": ["lockstep/"],
    "log/": ["log/", "lockstep/types.h", "lockstep/result.h"],
    "transport/": ["transport/", "log/", "proto/", "lockstep/"],
    # The simulated network draws its faults from the core's generator: numbers from a seed, no protocol in it.
    "transport/sim/": ["transport/", "log/", "proto/", "lockstep/", "consensus/core/random.h"],
    # How regions, lanes and outcomes are described, and nothing that acts: the core speaks of them as data.
    "consensus/core/": ["consensus/core/", "log/", "lockstep/", "transport/types.h"],
    "consensus/replica/": ["consensus/", "log/", "transport/", "proto/", "lockstep/"],
    "sim/": ["sim/", "consensus/", "log/", "transport/", "lockstep/"],
    "examples/": ["lockstep/"],
    "tools/sim/": ["tools/", "sim/", "lockstep/"],
    "tools/": ["tools/", "proto/", "lockstep/"],
}
OWN_PREFIXES = ("lockstep/", "log/", "transport/", "consensus/", "proto/", "sim/", "tools/", "tests/",
                "examples/")

# Implementations of the fabric know nothing of one another.
TRANSPORTS = ("tcp", "rdma", "sim")
# ... but RDMA falls back to TCP.
KNOWS = {("rdma", "tcp")}

# Headers from outside that a folder must not include; all others are fine there.
BANNED_HEADERS = {
    "include/lockstep/": r"boost/|google/|infiniband/|rdma/|spdlog/|xxhash|sys/|unistd|netinet/",
    "log/": r"boost/|google/|infiniband/|rdma/|spdlog/|thread$|mutex$|condition_variable$|iostream$|random$|"
            r"sys/socket|netinet/|arpa/",
    "consensus/core/": r"boost/|google/|infiniband/|rdma/|spdlog/|thread$|mutex$|shared_mutex$|condition_variable$|"
                       r"future$|atomic$|semaphore$|iostream$|fstream$|sstream$|filesystem$|random$|ctime$|time\.h$|"
                       r"cstdio$|stdio\.h$|sys/|unistd|fcntl|netinet/|arpa/|poll\.h|pthread",
}
# The one public header that is about Asio.
ASIO_HEADER = "include/lockstep/asio.h"

# What a pure function cannot call: it would be another input than its arguments.
BANNED_CALLS = {
    "consensus/core/": [
        (r"\b(?:system|steady|high_resolution|utc|file)_clock\b", "a clock: time comes in as an argument"),
        (r"\b(?:time|clock|clock_gettime|gettimeofday)\s*\(", "a clock: time comes in as an argument"),
        (r"\b(?:(?:rand|random|srand|getrandom)\s*\(|random_device\b|mt19937)",
         "a random source: randomness comes in as an argument"),
        (r"\bstd::(?:thread|jthread|mutex|async|this_thread)\b", "a thread or a lock: one thread steps a core"),
        (r"\bstd::(?:cout|cerr|clog|ofstream|ifstream)\b", "input or output: what to do goes out as an effect"),
        (r"\b(?:printf|fprintf|puts|fopen|getenv)\s*\(", "input or output: what to do goes out as an effect"),
    ],
}
# Nothing in the library ends the process but a failed check, or writes to the terminal.
LIBRARY = ("log/", "transport/", "consensus/", "sim/")
LIBRARY_CALLS = [
    (r"\b(?:std::)?(?:exit|quick_exit|_exit)\s*\(", "ends the process: errors are values"),
    (r"\bstd::(?:cout|cerr|clog)\b", "writes to the terminal: return an Error, or use the log"),
]


def folder_of(name, table):
    fits = [folder for folder in table if name.startswith(folder)]
    return max(fits, key=len) if fits else None


def check_header(name, included):
    """Why `name` may not include `included`; empty if it may."""
    folder = folder_of(name, ALLOWED)
    if folder is None:
        return ""
    transport = re.match(r"transport/(\w+)/", name)
    other = re.match(r"transport/(\w+)/", included)
    if transport and other and transport[1] != other[1] and other[1] in TRANSPORTS and \
            (transport[1], other[1]) not in KNOWS:
        return f"transport/{transport[1]} includes transport/{other[1]}: implementations know nothing of one another"
    if included.startswith(OWN_PREFIXES):
        if included.startswith(tuple(ALLOWED[folder])):
            return ""
        return f"{folder} includes \"{included}\"; it may include {', '.join(ALLOWED[folder])}"
    banned = BANNED_HEADERS.get(folder)
    if banned and re.match(banned, included) and not (name == ASIO_HEADER and included.startswith("boost/")):
        return f"{folder} includes <{included}>, which is none of its business"
    return ""


def check(root):
    findings = []
    for name in cpp_files(root):
        text = read(root, name)
        for match in _INCLUDE.finditer(text):
            problem = check_header(name, match[1])
            if problem:
                findings.append(Finding(name, line_of(text, match.start()), problem))
        code = without_comments_and_strings(text)
        calls = BANNED_CALLS.get(folder_of(name, BANNED_CALLS) or "", [])
        if name.startswith(LIBRARY):
            calls = calls + LIBRARY_CALLS
        for pattern, why in calls:
            for match in re.finditer(pattern, code):
                findings.append(Finding(name, line_of(code, match.start()), f"{match[0].strip()} is {why}"))
    return findings
